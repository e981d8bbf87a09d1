//! The conversation with the bot.

use maud::{Markup, html};

use crate::app::{Attention, Exchange};
use crate::web::context::Context;
use crate::web::parts;

/// A message that was not accepted, and the reason.
#[derive(Default)]
pub(in crate::web) struct UnsentMessage {
    pub text: String,
    pub why: String,
}

/// Renders the last exchanges. `exchanges` has one more than `last` if there are older ones.
pub(in crate::web) fn chat(
    exchanges: &[Exchange],
    last: usize,
    untaken: &UnsentMessage,
    attention: &Attention,
    context: &Context,
) -> Markup {
    let older = exchanges.len() > last;
    let exchanges = &exchanges[usize::from(older)..];
    let no_agent = attention.status.service.as_ref().and_then(|service| service.client.no_agent());
    html! {
        h1 { "Chat" }
        @if older { p { a href={ "/chat?last=" (last * 2) } { "Older messages" } } }
        @if exchanges.is_empty() { p .empty { "Nothing was said yet." @if no_agent.is_none() { " Say something below." } } }
        div .chat data-chat="" {
            @for exchange in exchanges {
                article .said { p .faint { "You, " @if exchange.in_fork { "in a fork, " } (context.relative(exchange.at)) } (parts::folded(&exchange.said, 30)) }
                @match (&exchange.answer, &exchange.error) {
                    (Some(answer), _) => article .answer { p .faint { "The bot" } (parts::folded(answer, 60)) },
                    (None, Some(error)) => article .answer .bad { (parts::folded(error, 6)) },
                    (None, None) => article .answer .faint { p { "…" } },
                }
            }
        }
        @if !untaken.why.is_empty() {
            p .bad role="alert" { "It was not sent: " (parts::with_code(&untaken.why)) "." }
        } @else if let Some(why) = &no_agent {
            p .bad { "There is no agent to talk with: " (parts::with_code(why)) "." }
        }
        form .say data-keep=[(!untaken.text.is_empty()).then_some("")] method="post" action="/chat" {
            (parts::token(context))
            label for="say" { "Say something" }
            // HTML ignores the first line feed of a text area.
            textarea id="say" name="text" rows="3" required { "\n" (untaken.text) }
            button { "Send" }
        }
    }
}
