/**
 * Asks a model server while this process may open no more files, and once it may again: `bun shortage-child.ts URL`, under a low
 * `ulimit -n`. Prints what came of the calls and how the server is seen, each time. With `late` behind the URL, how it is seen once
 * a check of its health that found no descriptor has failed when there are some again. With `few`, what came of calls that found none,
 * when there are a few again as they fail.
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
const FREED = 4;
const [, , url, mode] = process.argv;
const refused = Promise.withResolvers<never>();
refused.promise.catch(() => {});
let waiting = 0;
const model = modelOver([{ ...SPEC, url: url as string }]);
const upstreams = createUpstreams(
	{
		clock: systemClock,
		log: silentLog,
		fetch(address, init) {
			if (mode === "few" && init.method === "POST" && held.length > 0) return Promise.reject(refusalBesideFreed());
			if (mode !== "late" || init.method === "POST" || !areDescriptorsShort()) return fetch(address, init);
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

/** As the runtime says it where it had no descriptor to look a name up. */
const refusal = () => Object.assign(new Error("nobody listens"), { code: "ConnectionRefused" });

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

function refusalBesideFreed(): Error {
	fill();
	for (const file of held.splice(0, FREED)) closeSync(file);
	return refusal();
}

// A check of the server's health that is under way gives its descriptor back when it ends.
for (let quiet = mode === "few" ? 10 : 0, tries = 0; quiet < 10 && tries < 1_000; tries += 1)
	quiet = fill() === 0 && (await kindOf()) === "shortage" ? quiet + 1 : 0;
if (mode === "few") fill();
if (mode === "late") await until(() => waiting > 0);
else await calls();
for (const file of held.splice(0)) closeSync(file);
if (mode !== "late") await calls();
else {
	refused.reject(refusal());
	await nextTurn();
	said.push(upstreams.replicas()[0]?.health);
}
console.log(JSON.stringify(said));
process.exit(0);
