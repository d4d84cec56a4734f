/** Serves, shuts its door, prints the port, and is in office until it is killed: for a test that takes its rights away. */
import { drainListener } from "../../src/planes/drain-listener.ts";

const server = Bun.serve({ hostname: process.argv[2] ?? "", port: 0, fetch: () => new Response() });
await drainListener(server);
console.log(server.port);
