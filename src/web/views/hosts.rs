//! The hosts that share the journal.

use maud::{Markup, html};

use crate::app::{Attention, words};
use crate::journal::HostRecord;
use crate::web::context::Context;

pub(in crate::web) fn hosts(attention: &Attention, context: &Context) -> Markup {
    let hosts = &attention.status.hosts;
    html! {
        h1 { "Hosts" }
        @if hosts.is_empty() {
            p .empty { "The journal is a file of this host's own: no other host shares it." }
        } @else {
            div .scroll tabindex="0" role="region" aria-label="Hosts" {
                table {
                    thead { tr { th { "Host" } th { "State" } th { "Jobs" } th { "Clock" } th { "Version" } th { "Time zones" } th { "Role and labels" } } }
                    tbody { @for host in hosts { (row(host, context)) } }
                }
            }
            p .faint { "What a host that is gone has open, another takes over that is up and may run it." }
        }
    }
}

fn row(host: &HostRecord, context: &Context) -> Markup {
    let open = format!("{} of {} open", host.open, host.slots);
    html! {
        tr {
            th scope="row" { (host.name) }
            td {
                @if host.alive {
                    span .good { "up" } " since " (context.time(host.joined)) ", its lease ends " (context.relative(host.lease_until))
                } @else {
                    span .bad { "gone" } ", last seen " (context.relative(host.lease_until))
                }
            }
            td data-of="Jobs" { @if !host.alive && host.open > 0 { span .bad { (open) } } @else { (open) } }
            td data-of="Clock" {
                @match words::clock(host) {
                    Some(off) => { span .bad[!host.has_correct_time()] .warn[host.has_correct_time()] { (off) } @if !host.has_correct_time() { ": nothing fires there" } }
                    None => { "right" }
                }
            }
            td data-of="Version" { (host.version) }
            td data-of="Time zones" { (host.zones) }
            td data-of="Role and labels" { (words::roles(host)) }
        }
    }
}
