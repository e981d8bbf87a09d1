//! The service: its client, its channels, and the problems of files.

use maud::{Markup, html};

use crate::app::{Attention, ChannelState, ListenerState, Status};
use crate::web::context::Context;
use crate::web::frame::{NEEDS, place};
use crate::web::parts::{self, fact, text_value};

pub(in crate::web) fn service(channels: &[ChannelState], attention: &Attention, context: &Context) -> Markup {
    let status = &attention.status;
    html! {
        h1 { "Service" }
        @if let Some(service) = &status.service {
            div .buttons {
                @if service.paused.is_some() {
                    (parts::button("/service", "Resume everything", &[("do", "resume")], context))
                } @else {
                    (parts::button("/service", "Pause everything", &[("do", "pause")], context))
                }
            }
            dl .facts {
                (fact("Process", text_value(service.pid.to_string())))
                (fact("Client", Some(parts::with_code(&format!("{} {} ({})", service.client.name, service.client.version.as_deref().unwrap_or_default(), service.client.why)))))
                (fact("Journal", service.journal_fault.as_ref().map(|fault| html! { span .bad { (fault) } })))
                (fact("No agent", service.client.missing.as_ref().map(|missing| html! { span .bad { (parts::with_code(missing)) } })))
                (fact("Login", service.waiting_for_login.as_ref().map(|_| html! { span .bad { "jobs wait until the agent is logged in: " code { "ollim-bot login" } } })))
                (fact("Webhooks", service.webhooks.as_ref().map(|listener| match listener {
                    ListenerState::Served(at) => html! { "taken on " (at) },
                    ListenerState::Failed(why) => html! { span .bad { "not taken: " (parts::with_code(why)) } },
                })))
                (fact("Sandbox", Some(parts::with_code(&service.sandbox.detail))))
                (fact("Messages left", text_value(format!("{} of {} for background jobs", status.budget.left(), crate::bot::budget::CAPACITY))))
            }
        }
        (problems(status))
        @if attention.needs.len() > NEEDS {
            h2 id="all-needs" { "What needs you" }
            ul { @for need in &attention.needs { li { a href=(place(&need.about)) { (need.words) } } } }
        }
        h2 { "Channels" }
        @if channels.is_empty() { p .empty { "There is no channel but the terminal of " code { "ollim-bot run" } "." } }
        ul {
            @for channel in channels {
                li {
                    (channel.name)
                    @if let Some(failing) = status.failing_channels.iter().find(|failing| failing.name == channel.name) {
                        " " span .bad { (failing.state()) ", " (context.relative(failing.since)) ": " (parts::with_code(&failing.error)) }
                    } @else if !channel.is_tried() {
                        " " span .warn { "not tried yet: " code { "ollim-bot channels test " (channel.name) } }
                    }
                }
            }
        }
    }
}

fn problems(status: &Status) -> Markup {
    html! {
        @if !status.problems.is_empty() {
            h2 { "Files" }
            ul {
                @for problem in &status.problems {
                    li {
                        span .bad[problem.is_error()] .warn[!problem.is_error()] { @if problem.is_error() { "error " } @else { "warning " } }
                        (parts::problem(problem))
                    }
                }
            }
        }
    }
}
