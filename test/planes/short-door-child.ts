/**
 * A server with file descriptors for four connections. It prints its port, blocks until the given file exists, while
 * many clients wait in its accept queue, and then stops in order.
 */
import { closeSync, existsSync, openSync } from "node:fs";
import { libc } from "../../src/base/libc.ts";
import { drainListener, withConnectionClose } from "../../src/planes/drain-listener.ts";

const AT_ONCE = 4;
const allWait = process.argv[2] ?? "";
// Opens the C library now, as a gateway does for its journal's lock, because no descriptor is left later.
libc();
const server = Bun.serve({
	hostname: "127.0.0.1",
	port: 0,
	fetch: () => withConnectionClose(Bun.sleep(5).then(() => new Response("ok"))),
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
