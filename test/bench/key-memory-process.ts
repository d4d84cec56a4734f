/**
 * Memory of a key: fills the parts of the product that hold something for a key, each with as many as its argument says,
 * each of an account of its own, and prints bytes a key, counted by the runtime after a full collection.
 */
import { heapStats } from "bun:jsc";
import { systemClock } from "../../src/base/clock.ts";
import { newId, newUuid } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { createDigest } from "../../src/keys/digest.ts";
import type { LoadedKey } from "../../src/keys/keyring.ts";
import { createKeyring } from "../../src/keys/keyring.ts";
import type { Secret } from "../../src/keys/secret.ts";
import { createSlices } from "../../src/ledger/slices.ts";
import { createKeyLimits } from "../../src/limits/key-limits.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { generousStore } from "../support/generous-store.ts";
import { plainAccountFields, plainKeyFields } from "../support/plain-key.ts";

const keys = Number(process.argv[2] ?? 20_000);
const DRAWN_AT_ONCE = 100;

async function bytesInUse(): Promise<number> {
	for (let pass = 0; pass < 3; pass++) {
		Bun.gc(true);
		await Bun.sleep(20);
	}
	// What lies outside of the heap is in it.
	return heapStats().heapSize;
}

async function bytesAKey(fill: () => Promise<unknown>): Promise<number> {
	const before = await bytesInUse();
	const kept = await fill();
	const after = await bytesInUse();
	if (kept === undefined) throw new Error("what was filled is kept");
	return Math.round((after - before) / keys);
}

// As the driver gives a row: texts and objects of its own for each.
const load = async (): Promise<LoadedKey> => {
	const id = newId("key");
	const fields = plainKeyFields(id, { accountId: newId("acc"), name: `bench ${id.slice(-6)}` });
	return JSON.parse(JSON.stringify({ seq: 1, key: fields, account: plainAccountFields })) as LoadedKey;
};
const digest = createDigest("p".repeat(64));
const keyring = createKeyring({ load, log: silentLog }, { keysMax: keys });
const loadAll = async () => {
	for (let nth = 0; nth < keys; nth++) await keyring.load(digest(`sk_${nth}` as Secret));
	return keyring;
};
// Once for the code itself, and for what stays when a first key is there.
await keyring.load(digest("sk_first" as Secret));
const known = await bytesAKey(loadAll);
const ids = Array.from({ length: keys }, () => newId("key"));
const limited = await bytesAKey(async () => {
	const limits = createKeyLimits({ clock: systemClock });
	for (const id of ids) {
		limits.enter(id, null, null);
		limits.leave(id);
	}
	return limits;
});
const drawn = await bytesAKey(async () => {
	const options = { horizonMs: 1_000, idleReturnMs: 600_000, drawDeadlineMs: 5_000, tickMs: 600_000 };
	const slices = createSlices({ store: generousStore(), clock: systemClock, log: silentLog, newUuid }, options);
	for (let at = 0; at < ids.length; at += DRAWN_AT_ONCE) {
		const some = ids.slice(at, at + DRAWN_AT_ONCE);
		await Promise.all(some.map((budget) => slices.draw([budget], nanoUsd(1_000_000))));
	}
	return slices;
});
process.stdout.write(`${JSON.stringify({ known, limited, slice: drawn })}\n`);
process.exit(0);
