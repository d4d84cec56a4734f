/**
 * Asks a model server while this process may open no more files, and once it may again: `bun shortage-child.ts URL`, under a low
 * `ulimit -n`. Prints what came of the calls and how the server is seen, each time. With `late` behind the URL, how it is seen once
 * a check of its health that found no descriptor has failed when there are some again.
 */
import { closeSync, openSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { nextTurn } from "../../src/base/next-turn.ts";
import { areDescriptorsShort } from "../../src/upstream/call/upstream-error.ts";
import { createUpstreams } from "../../src/upstream/upstreams.ts";
import { askChat, chatCall, limitsWith, modelOver, snapshotOf } from "../support/upstream-catalog.ts";
import { SPEC, until } from "../support/upstream-set.ts";

const CALLS = 30;
const [, , url, late] = process.argv;
const refused = Promise.withResolvers<never>();
refused.promise.catch(() => {});
let waiting = 0;
const model = modelOver([{ ...SPEC, url: url as string }]);
const upstreams = createUpstreams(
	{
		clock: systemClock,
		log: silentLog,
		fetch(address, init) {
			if (late === undefined || init.method === "POST" || !areDescriptorsShort()) return fetch(address, init);
			waiting += 1;
			return refused.promise;
		},
	},
	{ limits: () => limitsWith({ healthIntervalMs: 5, breakerFailuresInRow: 3 }) },
);
upstreams.sync(snapshotOf(model));

const kindOf = () =>
	askChat(upstreams, model, chatCall()).then(
		() => "answered",
		(error) => error.kind ?? String(error),
	);

async function calls(): Promise<void> {
	const kinds: Record<string, number> = {};
	for (let call = 0; call < CALLS; call += 1) {
		const kind = await kindOf();
		kinds[kind] = (kinds[kind] ?? 0) + 1;
	}
	const [replica] = upstreams.replicas();
	said.push({ kinds, health: replica?.health, breaker: replica?.breaker });
}

const said: unknown[] = [];
await until(() => upstreams.replicas()[0]?.health === "up");
const held: number[] = [];

/** Opens what may still be opened; gives how many. */
function fill(): number {
	const before = held.length;
	try {
		for (;;) held.push(openSync("/dev/null", "r"));
	} catch {
		return held.length - before;
	}
}

// A check of the server's health that is under way gives its descriptor back when it ends.
for (let quiet = 0, tries = 0; quiet < 10 && tries < 1_000; tries += 1)
	quiet = fill() === 0 && (await kindOf()) === "shortage" ? quiet + 1 : 0;
if (late === undefined) await calls();
else await until(() => waiting > 0);
for (const file of held) closeSync(file);
if (late === undefined) await calls();
else {
	refused.reject(Object.assign(new Error("nobody listens"), { code: "ConnectionRefused" }));
	await nextTurn();
	said.push(upstreams.replicas()[0]?.health);
}
console.log(JSON.stringify(said));
process.exit(0);
