// Prints the files of the demo and its history up to now, as JSON.
import { files, history } from './demo.mjs';

process.stdout.write(JSON.stringify({ files, ...history(Date.now()) }));
