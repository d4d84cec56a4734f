import { inspect } from "node:util";
import type { HeartbeatStore, LogPosition } from "../../src/cluster/heartbeat.ts";
import { DatabaseBusy } from "../../src/db/outage.ts";
import type { ServerHistory } from "../../src/db/server-history.ts";
import type { ProjectFields } from "../../src/keys/key-entry.ts";
import type { LoadedKey } from "../../src/keys/keyring.ts";
import { LeaseExceeded, type LedgerStore } from "../../src/ledger/store.ts";
import { plainAccountFields } from "../support/plain-key.ts";
import { type Call, historyOf, type SimDatabase } from "./database.ts";
import { excuseLostData, settledRequestIds } from "./failover.ts";
import { CheckViolated, RowHeld } from "./model-store.ts";
import { keyFields } from "./process.ts";
import type { SimServer } from "./server.ts";
import { LEASE_TTL_MS } from "./terms.ts";
import type { SimKey, World } from "./world.ts";

/** Leases that a close handles per call: few, so that closing takes several calls. */
const CLOSE_BATCH = 3;
const ignored = () => {};

/** The model's statements as processes, operators and faults call them. */
export function createModelDatabase(world: Omit<World, "database">, server: SimServer): SimDatabase {
	const { model, mutant } = world;
	/** Servers on which every instance has waited for one lease after the move. */
	const quietServers = new Set([model.server]);
	/** A project with its cap, which may renew each day. */
	const projectFields = (id: string): ProjectFields => {
		const limits = { models: null, requestsPerMinute: null, concurrencyMax: null, tokensPerMinute: null };
		const daily = model.dailyCaps.get(id);
		const cap =
			daily === undefined ? { capPeriod: "lifetime", capNanoUsd: null } : { capPeriod: "day", capNanoUsd: daily };
		return { name: id, state: "active", ...limits, ...(cap as Pick<ProjectFields, "capPeriod" | "capNanoUsd">) };
	};
	const loadedKey = (key: SimKey): LoadedKey => {
		const project = mutant?.forgetsProjects ? null : key.project;
		const fields = keyFields({ ...key, project }, model.dailyCaps.get(key.id));
		return {
			seq: model.seq(),
			key: fields,
			account: plainAccountFields,
			project: project === null ? null : projectFields(project),
		};
	};
	let restore: (() => void) | undefined;
	const standby: SimDatabase["standby"] = {
		copy() {
			const tables = model.snapshot();
			const revoked = new Set([...world.keys.values()].filter((key) => key.revoked).map(({ id }) => id));
			restore = () => {
				const known = settledRequestIds(world);
				tables();
				for (const key of world.keys.values()) key.revoked = revoked.has(key.id);
				quietServers.delete(model.server);
				excuseLostData(world, known, revoked);
			};
		},
		goBack(gone) {
			restore?.();
			gone();
		},
	};
	const appendKey = (key: SimKey) =>
		model.append("key", key.id, keyFields(key, model.dailyCaps.get(key.id)) as unknown as Record<string, unknown>);

	const ask = <T>(call: Call, label: string, work: () => T) => call(label, server.atOnce(work));

	return {
		get up() {
			return server.up;
		},
		set up(value) {
			server.up = value;
		},
		crash: () => server.crash(),
		standby,
		heartbeats: (call) =>
			withHistory(historyOf(call), {
				join: (id, ttlMs, after) => ask(call, "join", () => model.join(id, ttlMs, after)),
				position: () => ask(call, "position", () => model.position()),
				goLive: (id, epoch, applied, ttlMs) => call("go live", server.goLive(id, epoch, applied, ttlMs)),
				heartbeat: (id, epoch, applied, ttlMs) => call("heartbeat", server.heartbeat(id, epoch, applied, ttlMs)),
				readAfter: async (seq) => {
					const look = historyOf(call).look();
					const page = () => ({ entries: model.log.slice(seq, seq + 50), place: model.position().server });
					const { entries, place } = await ask(call, "read log", page);
					if (entries.length > 0) look(place);
					return entries;
				},
				leave: (id, epoch) => call("leave", server.leave(id, epoch)),
			}),
		fence: (call) => ({
			server: () =>
				ask(call, "which server", () => ({
					mark: model.server,
					unquietMs: quietServers.has(model.server) ? 0 : LEASE_TTL_MS,
				})),
			quiet: (mark) => ask(call, "quiet", () => void quietServers.add(mark)),
			live: () => ask(call, "live", () => model.live()),
			silent: (id, epoch, beat) => call("silent", server.silent(id, epoch, beat)),
			lagging: ({ seq, atMicros }) =>
				call("lagging", (done, fail) => {
					if (model.log[seq - 1]?.atMicros === atMicros) server.lagging(seq)(done, fail);
					else fail(new Error("another server had that entry"));
				}),
			fenceOff: (id, epoch, beat) => call("fence off", server.fenceOff(id, epoch, beat)),
		}),
		ledger: (call, name, id, epoch) => ledgerStore(world, server, { call, name }, id, epoch),
		keyLoader: (call) => async (digest) => {
			const look = historyOf(call).look();
			const { loaded, place } = await ask(call, "load key", () => {
				const key = world.keys.get(digest);
				const loaded = key ? loadedKey(key) : { seq: model.seq(), key: null, account: null };
				return { loaded, place: model.position().server };
			});
			look(place);
			return loaded;
		},
		revoke: (call, id) =>
			call(
				"revoke",
				server.appending(() => {
					const key = world.keys.get(id);
					if (!key) throw new Error(`no key ${id}`);
					key.revoked = true;
					const seq = appendKey(key);
					return { seq, atMicros: model.log[seq - 1]?.atMicros ?? 0 };
				}),
			),
		addAccount(id, credit) {
			model.budgets.set(id, { id, kind: "account", account: id, limit: 0, drawn: 0, writtenOff: 0 });
			model.book(id, "top_up", credit, `opening ${id}`, false);
		},
		addKey(id, account, limit, _limits, daily) {
			if (daily) model.dailyCaps.set(id, limit);
			model.budgets.set(id, { id, kind: "key", account, limit: daily ? null : limit, drawn: 0, writtenOff: 0 });
		},
		addProject(id, account, limit, daily) {
			if (daily) model.dailyCaps.set(id, limit);
			model.budgets.set(id, { id, kind: "project", account, limit: daily ? null : limit, drawn: 0, writtenOff: 0 });
		},
		// No shares: the model does not simulate rate limits.
		shares: () => undefined,
		adjust: (account, amount, moved) =>
			server.appending(
				() => void model.book(account, "adjustment", amount(), `money ${world.timeline.nowMs()}`, false),
			)(moved, ignored),
		setCap: (id, limitOf, moved) =>
			server.appending(() => {
				const limit = limitOf();
				const key = world.keys.get(id);
				const isDaily = model.dailyCaps.has(id);
				if (isDaily) model.dailyCaps.set(id, limit);
				if (key && isDaily) appendKey(key);
				else if (isDaily) model.append("project", id, projectFields(id) as unknown as Record<string, unknown>);
				for (const budget of isDaily ? model.daysOf(id) : [model.budgets.get(id)]) {
					if (!budget) return;
					const lowered = limit !== null && (budget.limit === null || limit < budget.limit);
					budget.limit = limit;
					world.ceilings.set(budget.id, Math.max(budget.drawn, limit ?? Number.POSITIVE_INFINITY));
					model.append("budget", budget.id, { lowered });
				}
			})(moved, ignored),
		fenceOff: (id, epoch, beat) => server.fenceOff(id, epoch, beat)(ignored, ignored),
		closeLost: (id, epoch) => server.close(id, epoch, true, Number.POSITIVE_INFINITY)(ignored, ignored),
		hold(rows) {
			for (const row of rows) model.held.add(row);
			return () => {
				for (const row of rows) model.held.delete(row);
			};
		},
	};
}

function ledgerStore(
	world: Omit<World, "database">,
	server: SimServer,
	caller: { call: Call; name: string },
	id: string,
	epoch: number,
): LedgerStore {
	const { model } = world;
	const call: Call = (label, statement) =>
		caller.call(label, (done, fail) =>
			statement(
				(result) => {
					world.log?.(
						`${world.timeline.nowMs().toFixed(1)} ${caller.name} ${label} -> ${inspect(result, { breakLength: Number.POSITIVE_INFINITY, depth: 4 })}`,
					);
					done(result);
				},
				(error) => fail(asLedgerError(error)),
			),
		);
	const ask = <T>(label: string, work: () => T) => call(label, server.atOnce(work));
	return {
		grant: (requests) => ask("grant", () => model.grant(id, epoch, requests)),
		giveBack: (requests) => ask("return", () => model.giveBack(id, epoch, requests)),
		flush(settled, open) {
			// Copies the settlements when they are sent, because the statement may arrive after the writer has dropped them.
			const events = [...settled];
			return ask("flush", () => model.flush(id, epoch, events, open));
		},
		settleLate: (event) => ask("settle late", () => model.settleLate(id, epoch, event)),
		close: (keep) => call("close", server.close(id, epoch, false, CLOSE_BATCH, keep)),
		recall: (budgets) => ask("recall", () => model.recall(id, epoch, budgets)),
		recalls: () => ask("recalls", () => model.recalled(id, epoch)),
	};
}

/** Converts an error as the store on Postgres does. */
function asLedgerError(error: unknown): unknown {
	if (error instanceof RowHeld) return new DatabaseBusy(error.message);
	const exceeded = error instanceof CheckViolated && error.message === "lease_covers_settled";
	return exceeded ? new LeaseExceeded("more was charged than the lease holds") : error;
}

/** Adds the server's position to answers, as the store on Postgres does. */
function withHistory(history: ServerHistory, store: HeartbeatStore): HeartbeatStore {
	async function placed<Position extends LogPosition | null>(ask: () => Promise<Position>): Promise<Position> {
		const look = history.look();
		const found = await ask();
		if (found === null) return found;
		look(found.server);
		return { ...found, server: history.label() };
	}
	return {
		...store,
		position: () => placed(store.position),
		heartbeat: (...args) => placed(() => store.heartbeat(...args)),
	};
}
