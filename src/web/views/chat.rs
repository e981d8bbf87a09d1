//! The conversation with the bot.

use maud::{Markup, html};

use crate::app::Exchange;
use crate::web::context::Context;
use crate::web::parts;

/// The last so many exchanges: `exchanges` has one more where there are older ones.
pub(in crate::web) fn chat(exchanges: &[Exchange], last: usize, context: &Context) -> Markup {
    let older = exchanges.len() > last;
    let exchanges = &exchanges[usize::from(older)..];
    html! {
        h1 { "Chat" }
        @if older { p { a href={ "/chat?last=" (last * 2) } { "Older messages" } } }
        @if exchanges.is_empty() { p .empty { "Nothing was said yet. Say something below." } }
        div .chat data-chat="" {
            @for exchange in exchanges {
                article .said { p .faint { "You, " (context.relative(exchange.at)) } (parts::folded(&exchange.said, 30)) }
                @match (&exchange.answer, &exchange.error) {
                    (Some(answer), _) => article .answer { p .faint { "The bot" } (parts::folded(answer, 60)) },
                    (None, Some(error)) => article .answer .bad { (parts::folded(error, 6)) },
                    (None, None) => article .answer .faint { p { "…" } },
                }
            }
        }
        form .say method="post" action="/chat" {
            (parts::token(context))
            label for="say" { "Say something" }
            textarea id="say" name="text" rows="3" required {}
            button { "Send" }
        }
    }
}
