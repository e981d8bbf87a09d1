//! What the bot has said, newest first.

use maud::{Markup, html};

use crate::journal::{DeliveryState, Message};
use crate::web::context::Context;
use crate::web::parts;

pub(in crate::web) fn inbox(messages: &[Message], context: &Context) -> Markup {
    html! {
        h1 { "Inbox" }
        @if messages.is_empty() { p .empty { "The bot has said nothing yet." } }
        @for message in messages.iter().rev() {
            article .message {
                p .faint {
                    (context.moment(message.at))
                    @if let Some(id) = &message.id { " " (parts::job(id.as_str())) }
                    @if let Some(run) = &message.run { " " a href=(parts::run(run.as_str())) { "run " (run) } }
                    @for delivery in &message.deliveries {
                        " " @match delivery.state {
                            DeliveryState::Delivered => { "delivered on " (delivery.channel) },
                            DeliveryState::Waiting => { "not delivered on " (delivery.channel) " yet" },
                            DeliveryState::Failed => span .bad { "not delivered on " (delivery.channel) @if let Some(why) = &delivery.error { ": " (why) } },
                        }
                    }
                }
                (parts::folded(&message.text, 30))
            }
        }
    }
}
