import { silentLog } from "../../src/base/log.ts";
import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import type { FenceStore } from "../../src/cluster/fence.ts";
import type { HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import type { WitnessStore } from "../../src/cluster/witness.ts";
import { createServerHistory, type ServerHistory } from "../../src/db/server-history.ts";
import type { LoadedKey } from "../../src/keys/keyring.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import type { LedgerStore } from "../../src/ledger/store.ts";
import type { ShareStore } from "../../src/limits/share-store.ts";
import type { Statement } from "./server.ts";
import type { KeyLimitsOf } from "./world.ts";

export interface ShareHolder {
	readonly instanceId: string;
	present(): { readonly epoch: number } | undefined;
}

/** Sends a statement over a process's connection. Any call may fail. */
export type Call = <T>(label: string, statement: Statement<T>) => Promise<T>;

const histories = new WeakMap<Call, ServerHistory>();

/** History of the database servers that answered a process. */
export function historyOf(call: Call): ServerHistory {
	const history = histories.get(call) ?? createServerHistory({ log: silentLog });
	histories.set(call, history);
	return history;
}

/**
 * Database of a simulated world: the model (`model-database.ts`), or a real Postgres with the real functions
 * (`sql-database.ts`). Processes reach it through their connections; operators and faults change it directly.
 */
export interface SimDatabase {
	up: boolean;
	crash(): void;
	heartbeats(call: Call): HeartbeatStore;
	fence(call: Call): WitnessStore & FenceStore;
	ledger(call: Call, name: string, id: string, epoch: number): LedgerStore;
	keyLoader(call: Call): (digest: KeyDigest) => Promise<LoadedKey>;
	revoke(call: Call, key: string): Promise<AppendedEntry>;
	addAccount(id: string, credit: number): void;
	/** `daily`: the limit applies to each day separately. */
	addKey(
		id: string,
		account: string,
		limit: number | null,
		limits: KeyLimitsOf,
		daily: boolean,
		project: string | null,
	): void;
	addProject(id: string, account: string, limit: number | null, daily: boolean): void;
	/** Store of the shares of limits. Undefined if each instance counts requests for itself. */
	shares(call: Call, instanceLease: ShareHolder): ShareStore | undefined;
	/** Books the amount that `amount` returns when the statement executes; calls `moved` if it was booked. */
	adjust(account: string, amount: () => number, moved: () => void): void;
	setCap(id: string, limit: () => number | null, moved: () => void): void;
	fenceOff(id: string, epoch: number, beat: number): void;
	/** Closes an epoch as an operator does who attests that its journal is lost. */
	closeLost(id: string, epoch: number): void;
	/** A standby server with another identity and the tables as they were at `copy`; undefined if there is none. */
	readonly standby?:
		| {
				copy(): void;
				readonly promote?: (promoted: () => void) => void;
				/** Restores the copy on the same server, as from a snapshot. */
				goBack(gone: () => void): void;
		  }
		| undefined;
	/** Locks these rows (`budget x`, `lease x|i|1`, `reservation r`) until the returned function is called. */
	hold(rows: readonly string[]): () => void;
}
