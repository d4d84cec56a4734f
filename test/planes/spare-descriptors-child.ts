/** A server that lets idle clients go, to be run under a low `ulimit -n`: prints its port, then each warning. */
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { keepDescriptorsSpare } from "../../src/planes/spare-descriptors.ts";

const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 125, fetch: () => new Response("here") });
const log = createLog({ level: "warn", write: (line) => console.log(JSON.parse(line).message) });
keepDescriptorsSpare({ clock: systemClock, log }, server);
console.log(server.port);
