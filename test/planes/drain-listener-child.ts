/** Drains its listener, prints the port and runs until it is killed. A test starts it without the rights to drain. */
import { drainListener } from "../../src/planes/drain-listener.ts";

const server = Bun.serve({ hostname: process.argv[2] ?? "", port: 0, fetch: () => new Response() });
await drainListener(server);
console.log(server.port);
