/**
 * Serves with descriptors for four connections at a time. Prints its port, waits until many wait at the listener (the file
 * that it is given is there), takes nobody in meanwhile, and then stops in order.
 */
import { closeSync, existsSync, openSync } from "node:fs";
import { libc } from "../../src/base/libc.ts";
import { drainListener, lastAnswer } from "../../src/planes/drain-listener.ts";

const AT_ONCE = 4;
const allWait = process.argv[2] ?? "";
// A gateway has opened it long before, for the lock of its journal.
libc();
const server = Bun.serve({
	hostname: "127.0.0.1",
	port: 0,
	fetch: () => lastAnswer(Bun.sleep(5).then(() => new Response("ok"))),
});
console.log(server.port);
await Bun.sleep(0);
const files: number[] = [];
try {
	for (;;) files.push(openSync("/dev/null", "r"));
} catch {
	for (const file of files.slice(0, AT_ONCE)) closeSync(file);
}
while (!existsSync(allWait)) Bun.sleepSync(5);
await drainListener(server);
await server.stop();
process.exit(0);
