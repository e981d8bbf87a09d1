//! The bot's messages, newest first, and a search in them.

use maud::{Markup, html};

use crate::journal::{DeliveryState, Message};
use crate::web::context::Context;
use crate::web::pages::InboxQuery;
use crate::web::parts::{self, link};

/// Renders a page of messages. `messages` has one more than `rows` if there are older ones.
pub(in crate::web) fn inbox(messages: &[Message], rows: usize, query: &InboxQuery, context: &Context) -> Markup {
    let shown = &messages[..messages.len().min(rows)];
    let older = shown.last().filter(|_| messages.len() > rows);
    html! {
        h1 { "Inbox" }
        form .filter method="get" action="/inbox" role="search" {
            label { "Words " input type="search" name="words" value=(query.words) autocomplete="off"; }
            button { "Search" }
        }
        @if shown.is_empty() {
            p .empty { @if query.words.is_empty() { "The bot has said nothing yet." } @else { "The bot has said nothing with these words." } }
        }
        @for message in shown {
            article .message {
                p .faint {
                    (context.moment(message.at))
                    @if let Some(id) = &message.id { " " (parts::job(id.as_str())) }
                    @if let Some(run) = &message.run { " " a href=(parts::run(run.as_str())) { "run " (run) } }
                    @for delivery in &message.deliveries {
                        " " @match delivery.state {
                            DeliveryState::Delivered => { "delivered on " (delivery.channel) },
                            DeliveryState::Waiting => {
                                @match delivery.held(context.now) {
                                    Some(until) => { "held until " (context.moment(until)) " for " (delivery.channel) },
                                    None => { "not delivered on " (delivery.channel) " yet" },
                                }
                            },
                            DeliveryState::Failed => span .bad { "not delivered on " (delivery.channel) @if let Some(why) = &delivery.error { ": " (why) } },
                        }
                    }
                }
                (parts::message(&message.text, 30))
            }
        }
        @if let Some(last) = older {
            p { a href={ "/inbox?words=" (link("", &query.words, "")) "&before=" (last.number) } { "Older messages" } }
        }
    }
}
