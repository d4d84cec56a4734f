import { AssertionError, assert } from "../base/assert.ts";
import { Fault } from "../base/fault.ts";
import { type Log, silentLog } from "../base/log.ts";
import type { ControlEntry } from "../cluster/control-log.ts";
import { createServerHistory, type ServerHistory } from "../db/server-history.ts";
import type { Statements } from "../db/statements.ts";
import type { AccountFields, KeyEntry, KeyFields } from "./key-entry.ts";
import {
	createAccountEntry,
	createKeyEntry,
	createProjectEntry,
	type ProjectFields,
	setAccountFields,
	setKeyFields,
	setProjectFields,
} from "./key-entry.ts";
import type { KeyDigest } from "./secret.ts";

/** A key, if it exists, and the number of the newest control entry, both read in one snapshot. */
export interface LoadedKey {
	readonly seq: number;
	/** Null if no key has this digest. */
	readonly key: KeyFields | null;
	readonly account: AccountFields | null;
	readonly project?: ProjectFields | null;
}

export type Keyring = ReturnType<typeof createKeyring>;

export interface KeyringOptions {
	/** Maximum number of keys in memory, about 740 bytes each. Beyond it, the least recently used key is evicted. */
	keysMax?: number;
	/** Maximum number of digests that are remembered as unknown; beyond it the oldest is dropped. Default 50,000. */
	unknownMax?: number;
	/** Maximum number of loads from Postgres at once; beyond it Fault `service_unavailable`. Default 1,000. */
	loadsMax?: number;
}

interface Slot {
	readonly digest: KeyDigest;
	readonly entry: KeyEntry;
	/** Number of the newest control entry that the key's fields include. */
	seq: number;
	/** True if the key was used since `makeRoom` last visited this slot. */
	used: boolean;
}

const KEYS_MAX = 200_000;

/** How often an outdated row is read again before the request gets an error. */
const READS_MAX = 5;
/** Slots that `makeRoom` visits to find an unused one. After that it evicts the next slot, used or not. */
const SECOND_CHANCES_MAX = 32;

/**
 * Keys in memory, kept current by the control log. Invariant: a loaded row contains all entries up to its `seq`; later
 * ones are applied in order. A row older than an applied entry is read again, so that it does not undo that entry.
 */
export function createKeyring(
	deps: { load(digest: KeyDigest): Promise<LoadedKey>; log: Log },
	options: KeyringOptions = {},
) {
	const keysMax = options.keysMax ?? KEYS_MAX;
	const unknownMax = options.unknownMax ?? 50_000;
	const loadsMax = options.loadsMax ?? 1_000;
	assert(keysMax >= 1 && unknownMax >= 1 && loadsMax >= 1, "a keyring has room for something");

	const byDigest = new Map<KeyDigest, Slot>();
	const byId = new Map<string, Slot>();
	const accounts = createOwnerSlots(createAccountEntry, setAccountFields);
	const projects = createOwnerSlots(createProjectEntry, setProjectFields);
	const unknown = new Set<KeyDigest>();
	const loading = new Map<KeyDigest, Promise<KeyEntry | null>>();
	/** Newest applied entry about a key, account or project. A row is outdated if it lacks this entry. */
	let appliedSeq = 0;
	/** Number of `clear` calls. A load that started before the last `clear` does not insert its row. */
	let generation = 0;

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
			throw unavailable("the database could not load a key", error);
		}
	}

	function take(digest: KeyDigest, loaded: LoadedKey): KeyEntry | null {
		if (loaded.key === null) {
			rememberUnknown(digest);
			return null;
		}
		assert(loaded.account !== null, "a key comes with its account");
		assert(!byId.has(loaded.key.id), "a key is loaded only while it is not in the ring");
		if (byDigest.size >= keysMax) makeRoom();
		const { seq, key } = loaded;
		const account = accounts.take(key.accountId, loaded.account, seq);
		const project = loaded.project ? projects.take(key.projectId as string, loaded.project, seq) : null;
		const slot: Slot = { digest, entry: createKeyEntry(key, account, project), seq, used: false };
		byDigest.set(digest, slot);
		byId.set(key.id, slot);
		return slot.entry;
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

	/** Second-chance eviction: a slot used since the last visit moves to the end. A request only sets a flag. */
	function makeRoom(): void {
		let chances = SECOND_CHANCES_MAX;
		for (const slot of byDigest.values()) {
			if (!slot.used || chances === 0) {
				forget(slot);
				return;
			}
			chances -= 1;
			slot.used = false;
			byDigest.delete(slot.digest);
			byDigest.set(slot.digest, slot);
		}
	}

	function forget({ digest, entry }: Slot): void {
		byDigest.delete(digest);
		byId.delete(entry.id);
		entry.current = false;
		accounts.leave(entry.accountId);
		if (entry.project !== null) projects.leave(entry.project.id);
	}

	function applyKey(entry: ControlEntry): void {
		const slot = byId.get(entry.subject);
		const fields = entry.payload as unknown as KeyFields;
		if (slot === undefined) {
			// The entry may be about a key whose digest was tried, and remembered as unknown, before the key existed.
			unknown.clear();
		} else if (entry.seq > slot.seq) {
			slot.seq = entry.seq;
			// The key moved to a project that may not be in memory, so the key is loaded again at its next use.
			if (fields.projectId !== (slot.entry.project?.id ?? null)) forget(slot);
			else setKeyFields(slot.entry, fields);
		}
	}

	function peek(digest: KeyDigest): KeyEntry | "unknown" | undefined {
		const slot = byDigest.get(digest);
		if (slot === undefined) return unknown.has(digest) ? "unknown" : undefined;
		slot.used = true;
		return slot.entry;
	}

	return {
		/** Returns the key if it is in memory; "unknown" if it does not exist; undefined if it must be loaded. */
		peek,
		/** Loads the key from Postgres, once for concurrent callers. Fault `service_unavailable` without an answer. */
		load(digest: KeyDigest) {
			const known = peek(digest);
			if (known !== undefined) return Promise.resolve(known === "unknown" ? null : known);
			const running = loading.get(digest);
			if (running !== undefined) return running;
			if (loading.size >= loadsMax) return Promise.reject(unavailable("too many keys are being loaded"));
			const started = read(digest).finally(() => loading.delete(digest));
			loading.set(digest, started);
			return started;
		},
		apply(entry: ControlEntry) {
			if (entry.kind === "key") applyKey(entry);
			else if (entry.kind === "account")
				accounts.apply(entry.subject, entry.seq, entry.payload as unknown as AccountFields);
			else if (entry.kind === "project")
				projects.apply(entry.subject, entry.seq, entry.payload as unknown as ProjectFields);
			else return;
			appliedSeq = Math.max(appliedSeq, entry.seq);
		},
		/**
		 * Drops all keys after a fence, because entries may be missing. Continues in the log after `seq`, which may be
		 * lower after a failover.
		 */
		clear(seq: number) {
			generation += 1;
			appliedSeq = seq;
			for (const slot of byDigest.values()) slot.entry.current = false;
			byDigest.clear();
			byId.clear();
			accounts.clear();
			projects.clear();
			unknown.clear();
		},
		size: () => ({ keys: byDigest.size, unknown: unknown.size, accounts: accounts.size(), loading: loading.size }),
	};
}

function unavailable(detail: string, cause?: unknown): Fault {
	return new Fault("service_unavailable", "The API key cannot be checked right now. Please try again.", {
		retryAfterS: 1,
		private: detail,
		...(cause === undefined ? {} : { cause }),
	});
}

interface OwnerSlot<Entry> {
	readonly entry: Entry;
	seq: number;
	/** Number of keys in memory that use this account or project, which is removed at 0. */
	keys: number;
}

/** Shared objects of the accounts or projects of all keys in memory, as new as the newest applied or loaded entry. */
function createOwnerSlots<Entry extends { readonly id: string }, Fields>(
	create: (id: string, fields: Fields) => Entry,
	set: (entry: Entry, fields: Fields) => void,
) {
	const slots = new Map<string, OwnerSlot<Entry>>();

	function setAt(slot: OwnerSlot<Entry>, seq: number, fields: Fields): void {
		if (seq <= slot.seq) return;
		set(slot.entry, fields);
		slot.seq = seq;
	}

	return {
		/** Adds a key of the account or project. `seq`: newest control entry that `fields` include. */
		take(id: string, fields: Fields, seq: number): Entry {
			let slot = slots.get(id);
			if (slot === undefined) {
				slot = { entry: create(id, fields), seq, keys: 0 };
				slots.set(id, slot);
			} else setAt(slot, seq, fields);
			slot.keys += 1;
			return slot.entry;
		},
		leave(id: string): void {
			const slot = slots.get(id);
			assert(slot !== undefined && slot.keys > 0, "a key in the ring has its owners there");
			slot.keys -= 1;
			if (slot.keys === 0) slots.delete(id);
		},
		apply(id: string, seq: number, fields: Fields): void {
			const slot = slots.get(id);
			if (slot !== undefined) setAt(slot, seq, fields);
		},
		clear: () => slots.clear(),
		size: () => slots.size,
	};
}

/**
 * Reads all in one statement and so in one snapshot: the row contains exactly the control entries up to `seq`.
 * `history` gets the server's position, to notice a later server that lacks the row.
 */
export function keyLoader(
	statements: Statements,
	history: Pick<ServerHistory, "look"> = createServerHistory({ log: silentLog }),
): (digest: KeyDigest) => Promise<LoadedKey> {
	return async (digest) => {
		const look = history.look();
		const [row] = await statements<Omit<LoadedKey, "seq"> & { seq: string; place: string }>`
			select c.seq, server_place() as place, case when k.id is not null then key_fields(k) end as key, case when a.id is not null then account_fields(a) end as account,
				case when p.id is not null then project_fields(p) end as project
			from (select coalesce(max(seq), 0) as seq from control_log) c
				left join api_key k on k.digest = ${digest}
				left join account a on a.id = k.account_id
				left join project p on p.id = k.project_id`;
		if (row === undefined) throw new Error("the control log gives no position");
		const { place, ...loaded } = row;
		look(place);
		return { ...loaded, seq: Number(row.seq) };
	};
}
