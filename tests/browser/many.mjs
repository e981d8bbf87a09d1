// Every page that lists runs or jobs, of a bot with a long past and many jobs: on any screen.
import { lookAtEach } from './pages.mjs';

const paths = ['/', '/?days=7', '/next', '/jobs', '/jobs/job-7', '/runs', '/runs?job=job-7', '/runs/0001869f', '/costs', '/refusals'];

export async function test(tools) {
  await lookAtEach(paths, tools);
}
