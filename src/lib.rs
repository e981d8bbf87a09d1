//! ollim-bot: a background job scheduler for a personal bot.
//!
//! The flow, and the order of the modules: a person's files become [`definition`]s. [`schedule`] waits for the next
//! occurrence, claims it in the [`journal`] and hands it to [`run`], which starts an [`agent`] under a [`policy`],
//! serves it our tools over [`mcp`], records the outcome and notifies the person through a [`channel`]. [`app`] defines
//! the commands and who may use them, [`daemon`] constructs the parts, and [`cli`] parses and renders.
//!
//! Two promises hold everywhere: a job can do what its file says and nothing else, and every occurrence that falls due
//! ends in exactly one recorded outcome, on time.

#![cfg_attr(test, allow(clippy::too_many_lines, reason = "a test is read from top to bottom"))]

#[macro_use]
pub mod failpoints;

pub mod clock;
pub mod config;
pub mod connections;
pub mod heartbeat;
pub mod hexadecimal;
pub mod home;
mod links;
pub mod owner;
pub mod program;
pub mod refusal;
pub mod search_path;

pub mod tls;

pub mod policy;

pub mod definition;

pub mod agents;

pub mod journal;

pub mod schedule;

pub mod agent;

pub mod mcp;

pub mod bot;

pub mod run;

pub mod webhooks;

pub mod channel;

pub mod app;

pub mod web;

pub mod daemon;

pub mod cli;
