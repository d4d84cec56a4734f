/**
 * Asks a model server while this process may open no more files, and once it may again: `bun shortage-child.ts URL`, under a low
 * `ulimit -n`. Prints what came of the calls and how the server is seen, each time.
 */
import { closeSync, openSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { askChat, chatCall, limitsWith, modelOver, snapshotOf } from "../support/upstream-catalog.ts";
import { SPEC, until } from "../support/upstream-set.ts";

const CALLS = 30;
const model = modelOver([{ ...SPEC, url: process.argv[2] as string }]);
const upstreams = createUpstreams(
	{ clock: systemClock, log: silentLog },
	{ limits: () => limitsWith({ healthIntervalMs: 5, breakerFailuresInRow: 3 }) },
);
upstreams.sync(snapshotOf(model));

async function calls(): Promise<void> {
	const kinds: Record<string, number> = {};
	for (let call = 0; call < CALLS; call += 1) {
		const kind = await askChat(upstreams, model, chatCall()).then(
			() => "answered",
			(error) => error.kind ?? String(error),
		);
		kinds[kind] = (kinds[kind] ?? 0) + 1;
	}
	const [replica] = upstreams.replicas();
	said.push({ kinds, health: replica?.health, breaker: replica?.breaker });
}

const said: unknown[] = [];
await until(() => upstreams.replicas()[0]?.health === "up");
const held: number[] = [];
try {
	for (;;) held.push(openSync("/dev/null", "r"));
} catch {
	// None is left.
}
await calls();
for (const file of held) closeSync(file);
await calls();
console.log(JSON.stringify(said));
process.exit(0);
