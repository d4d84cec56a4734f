import { AssertionError, assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/fault.ts";
import type { Log } from "../base/log.ts";
import type { ControlEntry } from "../cluster/control-log.ts";
import type { KeyDigest } from "./digest.ts";
import type { AccountFields, KeyEntry, KeyFields } from "./key-entry.ts";
import {
	accountFieldsOf,
	createAccountEntry,
	createKeyEntry,
	keyFieldsOf,
	setAccountFields,
	setKeyFields,
} from "./key-entry.ts";
import { createOwnerSlots } from "./owner-slots.ts";
import { createProjectEntry, type ProjectFields, setProjectFields } from "./project-entry.ts";
import { createRestingKeys } from "./resting-keys.ts";

/** What one statement read: the key, if there is one, and the newest control entry that the same snapshot held. */
export interface LoadedKey {
	readonly seq: number;
	/** Null: no key has this digest. */
	readonly key: KeyFields | null;
	readonly account: AccountFields | null;
	/** Of a key that has one. */
	readonly project?: ProjectFields | null;
}

/**
 * The keys that this instance knows, in memory and kept up to date by the control log.
 *
 * What it rests on: a loaded row is as new as its `seq`, and entries after it are applied in order. An entry that was
 * applied here before an older row arrived is therefore never undone: such a row is read again.
 */
export interface Keyring {
	/** The key, "unknown" if it is known that there is none, undefined if it must be loaded. */
	peek(digest: KeyDigest): KeyEntry | "unknown" | undefined;
	/** Reads the key from Postgres, once however many ask. Fault service_unavailable if Postgres cannot be asked. */
	load(digest: KeyDigest): Promise<KeyEntry | null>;
	/** Takes in one control entry; all kinds may be passed, in order. */
	apply(entry: ControlEntry): void;
	/** Once a second: keys that were not used for a quarter of an hour are laid to rest, where one costs a seventh. */
	tick(): void;
	/**
	 * Forgets everything: after this instance was fenced off it does not know what it missed. From here on it follows the log
	 * behind `seq`: on a server that took over without the last entries that is less than was applied before, and every
	 * row that can be read there would be taken for an outdated one.
	 */
	clear(seq: number): void;
	size(): { keys: number; unknown: number; accounts: number; loading: number };
}

export interface KeyringOptions {
	/** In use at once; beyond it the least recently used keys are laid to rest. Default 200,000. */
	keysMax?: number;
	/** At rest; beyond it one is let go for each that comes, and loaded again when it is used. Default 1,000,000. */
	restingMax?: number;
	/** Digests of no key that are remembered; beyond it the oldest are asked for again. Default 50,000. */
	unknownMax?: number;
	/** Loads under way at once; beyond it service_unavailable. Default 1,000. */
	loadsMax?: number;
}

interface Slot {
	readonly digest: KeyDigest;
	readonly entry: KeyEntry;
	/** The newest control entry that the key's own fields reflect. */
	seq: number;
	/** Since the clock hand passed; see `makeRoom`. */
	used: boolean;
	/** The tick in which it was seen to have been used. */
	usedAtTick: number;
}

/** How often an outdated row is read again before the client is asked to come back. */
const READS_MAX = 5;
/** Slots that one insertion looks at to find one that was not used lately; then the next one goes, used or not. */
const SECOND_CHANCES_MAX = 32;
/**
 * A request that is still being read when its key is laid to rest hears 503, since its entry hears of no change any more:
 * so this is longer than anybody may take to send a body.
 */
const REST_AFTER_TICKS = 15 * 60;
const TICK_MS = 1_000;
/** Slots that one tick looks at. */
const SLOTS_A_TICK = 2_000;

export function createKeyring(
	deps: { load(digest: KeyDigest): Promise<LoadedKey>; log: Log },
	options: KeyringOptions = {},
): Keyring {
	const keysMax = options.keysMax ?? 200_000;
	const restingMax = options.restingMax ?? 1_000_000;
	const unknownMax = options.unknownMax ?? 50_000;
	const loadsMax = options.loadsMax ?? 1_000;
	assert(keysMax >= 1 && restingMax >= 1 && unknownMax >= 1 && loadsMax >= 1, "a keyring has room for something");

	const byDigest = new Map<KeyDigest, Slot>();
	const byId = new Map<string, Slot>();
	const accounts = createOwnerSlots(createAccountEntry, setAccountFields);
	const projects = createOwnerSlots(createProjectEntry, setProjectFields);
	const resting = createRestingKeys(restingMax);
	const unknown = new Set<KeyDigest>();
	const loading = new Map<KeyDigest, Promise<KeyEntry | null>>();
	/** The newest entry about keys, accounts or projects that was applied; others do not make a loaded row outdated. */
	let appliedSeq = 0;
	/** Counts `clear`, so that a load that began before it does not bring its row in. */
	let generation = 0;
	let ticks = 0;
	let sweep = byDigest.values();

	async function read(digest: KeyDigest): Promise<KeyEntry | null> {
		for (let reads = 0; reads < READS_MAX; reads++) {
			const startedIn = generation;
			const loaded = await ask(digest);
			if (startedIn === generation && loaded.seq >= appliedSeq) return take(digest, loaded);
		}
		throw unavailable("the keys changed faster than they could be read");
	}

	async function ask(digest: KeyDigest): Promise<LoadedKey> {
		try {
			return await deps.load(digest);
		} catch (error) {
			if (error instanceof AssertionError) throw error;
			deps.log.warn("a key could not be loaded", { error });
			throw unavailable("the database could not be asked for a key", error);
		}
	}

	function take(digest: KeyDigest, loaded: LoadedKey): KeyEntry | null {
		if (loaded.key === null) {
			rememberUnknown(digest);
			return null;
		}
		assert(loaded.account !== null, "a key comes with its account");
		assert(!byId.has(loaded.key.id), "a key is loaded only while it is not in the ring");
		return enter(digest, loaded.key, loaded.seq, loaded.account, loaded.seq, loaded.project).entry;
	}

	function enter(
		digest: KeyDigest,
		key: KeyFields,
		seq: number,
		ofAccount: AccountFields,
		accountSeq: number,
		ofProject: ProjectFields | null = null,
	): Slot {
		if (byDigest.size >= keysMax) makeRoom();
		const account = accounts.take(key.accountId, ofAccount, accountSeq);
		const project = ofProject === null ? null : projects.take(key.projectId as string, ofProject, seq);
		const slot: Slot = { digest, entry: createKeyEntry(key, account, project), seq, used: false, usedAtTick: ticks };
		byDigest.set(digest, slot);
		byId.set(slot.entry.id, slot);
		return slot;
	}

	function rememberUnknown(digest: KeyDigest): void {
		if (unknown.size >= unknownMax) {
			for (const oldest of unknown) {
				unknown.delete(oldest);
				break;
			}
		}
		unknown.add(digest);
	}

	/** Second chance: one used since the last look moves to the end. Costs nothing on the way of a request but a flag. */
	function makeRoom(): void {
		let chances = SECOND_CHANCES_MAX;
		for (const slot of byDigest.values()) {
			if (!slot.used || chances === 0) {
				letGo(slot);
				return;
			}
			chances -= 1;
			if (slot.used) slot.usedAtTick = ticks;
			slot.used = false;
			byDigest.delete(slot.digest);
			byDigest.set(slot.digest, slot);
		}
	}

	/** To rest, if it has one of our ids and no project; else it is forgotten, and read again when it is used. */
	function letGo(slot: Slot): void {
		const { digest, entry, seq } = slot;
		if (entry.project === null) {
			const ofAccount = { accountSeq: accounts.seqOf(entry.accountId), account: accountFieldsOf(entry.account) };
			resting.put({ digest, seq, fields: keyFieldsOf(entry), ...ofAccount });
		}
		forget(slot);
	}

	function forget({ digest, entry }: Slot): void {
		byDigest.delete(digest);
		byId.delete(entry.id);
		entry.current = false;
		accounts.leave(entry.accountId);
		if (entry.project !== null) projects.leave(entry.project.id);
	}

	function wake(digest: KeyDigest): Slot | undefined {
		const key = resting.take(digest);
		return key && enter(digest, key.fields, key.seq, key.account, key.accountSeq);
	}

	function tick(): void {
		ticks += 1;
		for (let looked = 0; looked < SLOTS_A_TICK; looked++) {
			const { done, value: slot } = sweep.next();
			if (done) {
				sweep = byDigest.values();
				return;
			}
			if (slot.used) {
				slot.used = false;
				slot.usedAtTick = ticks;
			} else if (ticks - slot.usedAtTick >= REST_AFTER_TICKS) letGo(slot);
		}
	}

	function applyKey(entry: ControlEntry): void {
		const slot = byId.get(entry.subject);
		const fields = entry.payload as unknown as KeyFields;
		if (slot === undefined) {
			if (resting.applyKey(entry.subject, entry.seq, fields)) return;
			// Perhaps a new key, whose digest somebody tried before it was made.
			unknown.clear();
		} else if (entry.seq > slot.seq) {
			slot.seq = entry.seq;
			// Of the project that it was moved to nothing is known here.
			if ((fields.projectId ?? null) !== (slot.entry.project?.id ?? null)) forget(slot);
			else setKeyFields(slot.entry, fields);
		}
	}

	function applyAccount(entry: ControlEntry): void {
		const fields = entry.payload as unknown as AccountFields;
		resting.applyAccount(entry.subject, entry.seq, fields);
		accounts.apply(entry.subject, entry.seq, fields);
	}

	function peek(digest: KeyDigest): KeyEntry | "unknown" | undefined {
		const slot = byDigest.get(digest) ?? wake(digest);
		if (slot === undefined) return unknown.has(digest) ? "unknown" : undefined;
		slot.used = true;
		return slot.entry;
	}

	return {
		peek,
		load(digest) {
			const known = peek(digest);
			if (known !== undefined) return Promise.resolve(known === "unknown" ? null : known);
			const running = loading.get(digest);
			if (running !== undefined) return running;
			if (loading.size >= loadsMax) return Promise.reject(unavailable("too many keys are being loaded"));
			const started = read(digest).finally(() => loading.delete(digest));
			loading.set(digest, started);
			return started;
		},
		apply(entry) {
			if (entry.kind === "key") applyKey(entry);
			else if (entry.kind === "account") applyAccount(entry);
			else if (entry.kind === "project")
				projects.apply(entry.subject, entry.seq, entry.payload as unknown as ProjectFields);
			else return;
			appliedSeq = Math.max(appliedSeq, entry.seq);
		},
		tick,
		clear(seq) {
			generation += 1;
			appliedSeq = seq;
			for (const slot of byDigest.values()) slot.entry.current = false;
			byDigest.clear();
			byId.clear();
			accounts.clear();
			projects.clear();
			unknown.clear();
			resting.clear();
		},
		size: () => ({
			keys: byDigest.size + resting.size(),
			unknown: unknown.size,
			accounts: accounts.size(),
			loading: loading.size,
		}),
	};
}

/** Ticks once a second until what it returns is called. */
export function tickKeyring(keyring: Keyring, clock: Clock): () => void {
	let cancel = clock.after(TICK_MS, tick);
	function tick(): void {
		cancel = clock.after(TICK_MS, tick);
		keyring.tick();
	}
	return () => cancel();
}

function unavailable(detail: string, cause?: unknown): Fault {
	return new Fault("service_unavailable", "The API key cannot be checked right now. Please try again.", {
		retryAfterS: 1,
		private: detail,
		...(cause === undefined ? {} : { cause }),
	});
}
