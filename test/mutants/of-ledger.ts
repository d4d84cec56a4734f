import type { MutantsOfFile } from "./mutant.ts";
import { INSTANCE_LEASE } from "./mutant.ts";

/** Holds, the way of settlements to Postgres, the lives of an instance. */
export const ledgerMutants: readonly MutantsOfFile[] = [
	{
		file: "ledger/ledger.ts",
		killers: ["ledger/ledger", "ledger/journal-carry", 60],
		mutants: [
			{
				breaks: "a reservation looks at the account's slice alone",
				before: "account.free < amount || key.free < amount) return undefined;",
				after: "account.free < amount) return undefined;",
			},
			{
				breaks: "a retired epoch admits requests",
				before: 'if (retired) throw unavailable("this epoch of the instance has ended");',
				after: "",
			},
			{
				breaks: "a full queue admits requests",
				before: 'return writer.isFull() ? "too many settlements wait for the database" : journal.problem();',
				after: "return journal.problem();",
			},
			{
				breaks: "the rest of a settlement that stands in no journal can be spent at once",
				before: "if (journalled) slices.leave(slice, subUsd(hold.reserved, charged), hold.lowering);",
				after: "slices.leave(slice, subUsd(hold.reserved, charged), hold.lowering);",
			},
			{
				breaks: "an excess is taken from the account's slice without looking at the key's",
				before: "minUsd(excess, freeOf(hold))",
				after: "minUsd(excess, hold.account.free)",
			},
			{
				breaks: "an excess that credit does not cover is charged",
				before: "const charged = subUsd(costNanoUsd, off);",
				after: "const charged = costNanoUsd;",
			},
			{
				breaks: "a hold can be settled twice",
				before: 'assert(hold.state === "held", "a hold is settled once");',
				after: "",
			},
			{
				breaks: "a settlement is not journalled",
				before: "journal.settle(JSON.stringify(event));\n",
				after: "",
			},
			{
				breaks: "a bound grows without being journalled",
				before: "journal.progress(JSON.stringify({ id: hold.admitted.id, ...progress }));",
				after: "",
			},
			{
				breaks: "a bound that does not grow is journalled all the same, and may fall",
				before: "if (progress.bound <= hold.bound) return;",
				after: "",
			},
			{
				breaks: "an epoch's leases are closed while requests still run",
				before: "const finished = await inTime(idle);",
				after: "const finished = true;",
			},
			{
				breaks: "an epoch's leases are closed before its last settlement is in Postgres",
				before: "const handedIn = finished && (await inTime(writer.drain()));",
				after: "const handedIn = finished;",
			},
			{
				breaks: "a journal is removed though not all of it is in Postgres",
				before: "if (clean) journal.destroy();",
				after: "if (clean || finished) journal.destroy();",
			},
			{
				breaks: "the journal is closed before those have settled that waited for credit to the end",
				before: "if (!finished) await sleep(clock, 0);",
				after: "",
			},
			{
				breaks: "a request settles behind its journal, which nobody hears of",
				before: "if (closed) return leaveToReplay(hold);",
				after: "",
			},
			{
				breaks: "what outlived its journal is still delivered",
				before: "if (closed) throw closedJournal();",
				after: "",
			},
			{
				breaks: "mode remote answers before Postgres knows of the reservation",
				before: "writer.hurry();\n\t\t\treturn hold.known;",
				after: "writer.hurry();\n\t\t\treturn undefined;",
			},
			{
				breaks: "mode host sends its last bytes before the disk has the settlement",
				before: 'return mode === "host" ? journal.durable() : settling.get(hold);',
				after: "return settling.get(hold);",
			},
			{
				breaks: "a request claims its account's credit before its key's cap was asked",
				before: "slices.draw([budgets === undefined ? key : [key, ...budgets], account], amount)",
				after: "slices.draw([account, budgets === undefined ? key : [key, ...budgets]], amount)",
			},
		],
	},
	{
		file: "ledger/unacknowledged.ts",
		killers: ["ledger/ledger", "ledger/journal-carry", 60],
		mutants: [
			{
				breaks: "the rest of a settlement that stands in no journal outlives a lowered limit",
				before: "lowerings[ticket] = hold.lowering;",
				after: "lowerings[ticket] = Number.POSITIVE_INFINITY;",
				killers: ["ledger/ledger"],
			},
			{
				breaks: "a settled request keeps its segment of the journal for ever",
				before: "journal.acknowledge(segments[ticket] as number);",
				after: "",
			},
			{
				breaks: "a ticket is another one's while its settlement still waits",
				before: "unused.pop() ?? charges.length;",
				after: "0;",
			},
			{
				breaks: "the rest of a settlement that stands in the journal comes back twice",
				before: "journalled ? undefined : subUsd(hold.reserved, charged);",
				after: "subUsd(hold.reserved, charged);",
			},
		],
	},
	{
		file: "ledger/settled-queue.ts",
		killers: ["ledger/writer", "ledger/ledger", 60],
		mutants: [
			{
				breaks: "a settlement joins a batch that is on its way, and is acknowledged with it",
				before: "if (present && present !== lent && ",
				after: "if (present && ",
			},
			{
				breaks: "what is behind a smaller batch is forgotten",
				before: "batches.splice(0, 1, lent, rest);",
				after: "batches.splice(0, 1, lent);",
			},
			{
				breaks: "what was acknowledged is sent again with those that come behind it",
				before: "batch.clear();",
				after: "",
			},
		],
	},
	{
		file: "ledger/settled-columns.ts",
		killers: ["ledger/kept-batches", "ledger/functions"],
		mutants: [
			{
				breaks: "a text of a column is sent though a settlement came after it was made",
				before: "if (this.#texts.size > 0) this.#texts.clear();",
				after: "",
			},
			{
				breaks: "the first of a batch speaks for others that say something else",
				before: "column.every((value) => value === first)",
				after: "column.some((value) => value === first)",
			},
			{
				breaks: "of a batch that is sent again all but the first lose what all of them said",
				before: "new Array(settlements).fill(sent[name][0])",
				after: "sent[name]",
			},
		],
	},
	{
		file: "ledger/carrying.ts",
		killers: ["ledger/ledger", "ledger/journal-carry", 60],
		mutants: [
			{
				breaks: "a request that is carried forward loses what was known of it",
				before: "oldest.progress && JSON.stringify({ id, ...oldest.progress }),",
				after: "undefined,",
			},
			{
				breaks: "running requests are never carried forward",
				before: "if (keepsFrom <= nothingBefore) return;",
				after: "return;",
			},
			{
				breaks: "those behind the first that are looked at are never carried forward",
				before: "if (left === 0) nothingBefore = keepsFrom;",
				after: "nothingBefore = keepsFrom;",
			},
			{
				breaks: "what was looked at for one segment is not looked at for the next",
				before: "left = running.reach;",
				after: "left = 0;",
			},
		],
	},
	{
		file: "ledger/writer.ts",
		killers: ["ledger/writer", "ledger/ledger", 60],
		mutants: [
			{
				breaks: "settlements of an epoch that another server does not know are not counted as lost",
				before: "unknown += settledNow.fresh + settledNow.late;",
				after: "unknown += settledNow.fresh;",
				killers: [...INSTANCE_LEASE],
			},
			{
				breaks: "settlements that wait for a held row are forgotten",
				before: "aside.append(batch.where((place) => held.has(place)));",
				after: "",
			},
			{
				breaks: "settlements that wait for a held row count as acknowledged",
				before: "batch.acknowledge(held);",
				after: "batch.acknowledge(NOBODY_HELD);",
			},
			{
				breaks: "settlements that wait for a held row are lost with a failed flush",
				before: "settled.push(batch);",
				after: "",
			},
			{
				breaks: "a settlement that is refused again and again is dropped",
				before: "settled.takeBack();\n\t\tsettled.rotate();",
				after: "settled.lend(1);\n\t\tsettled.remove();",
			},
			{
				breaks: "the writer is drained while settlements wait for a held row",
				before: "while (settled.length() + aside.length() > 0) {",
				after: "while (settled.length() > 0) {",
			},
			{
				breaks: "a batch of which the fate is unknown counts as flushed",
				before: "settled.takeBack();\n\t\t\tnoteFailed(",
				after: "settled.remove();\n\t\t\tnoteFailed(",
			},
			{
				breaks: "nothing that was acknowledged lately can be sent again",
				before: "kept.add(carriedOut.columns, clock.monotonicMs());",
				after: "",
			},
			{
				breaks: "what is sent again is given up where somebody holds its row",
				before: "batch = batch.where((place) => settledNow.held.has(place));",
				after: "batch = NOTHING;",
			},
			{
				breaks: "who waits until Postgres knows of a request that has ended hears nothing",
				before: "if (request.acknowledge !== undefined) return;",
				after: "",
			},
			{
				breaks: "what runs is told to Postgres though it has ended",
				before: "if (!opened.release(request.slot, request)) outlived.release(request.slot, request);",
				after: "",
			},
			{
				breaks: "what waits for a held row does not count for a full queue",
				before: "isFull: () => settled.length() + aside.length() >= options.queueMax,",
				after: "isFull: () => settled.length() >= options.queueMax,",
			},
		],
	},
	{
		file: "ledger/settling.ts",
		killers: ["ledger/writer", "ledger/recovery", ...INSTANCE_LEASE, 60],
		mutants: [
			{
				breaks: "each late settlement of an account whose row is held is waited for",
				before: "accounts.add(event.account);",
				after: "",
			},
			{
				breaks: "settlements of leases that were closed are lost",
				before: "const waiting = new Set(await settleLate(store, events));",
				after: "const waiting: ReadonlySet<SettledEvent> = NONE;",
			},
			{
				breaks: "a settlement whose grant the database forgot is refused for ever",
				before: "if (!(error instanceof LeaseExceeded)) throw error;\n\t\treturn settleEach",
				after: "throw error;\n\t\treturn settleEach",
			},
			{
				breaks: "what fits its lease goes late beside what does not",
				before: "if (fits && !fits.late) {",
				after: "if (fits && fits.late) {",
			},
		],
	},
	{
		file: "ledger/epoch.ts",
		killers: [...INSTANCE_LEASE, 60],
		mutants: [
			{
				breaks: "an epoch that ends before anybody noticed another server leaves to it what it has lost",
				before: "if (telling === undefined && (await untilDone(deps, isElsewhere))) void tellAgain();",
				after: "",
			},
			{
				breaks: "no lease margin",
				before: "marginMs: Math.min(MARGIN_MS_MAX, leaseTtlMs / 5),",
				after: "marginMs: 0,",
			},
			{
				breaks: "a new epoch goes on with the keys that the one before it knew",
				before: "parts.reset(heartbeat.appliedSeq());",
				after: "",
			},
			{
				breaks: "the ledger does not hear of lowered limits",
				before: 'if (entry.kind === "budget") ledger?.',
				after: 'if (entry.kind === "catalog") ledger?.',
			},
			{
				breaks: "an epoch gives up its journal's lock before it has ended",
				before: "return await built.retire(drainMs, () => heartbeat.leave());",
				after: "claim.release();\n\t\t\treturn await built.retire(drainMs, () => heartbeat.leave());",
			},
		],
	},
	{
		file: "ledger/instance-lease.ts",
		killers: [...INSTANCE_LEASE, 60],
		mutants: [
			{
				breaks: "a process takes a number again that another server gives again",
				before: "store.join(id, ttlMs, joined.at(-1) ?? 0)",
				after: "store.join(id, ttlMs)",
			},
			{
				breaks: "epochs that were fenced off before do not tell another server again",
				before: 'if (why === "another server") tellAgain();',
				after: "",
			},
			{
				breaks: "an instance that stops can open its gate once more",
				before: 'gate.close("stopping", true);',
				after: 'gate.close("stopping");',
				equivalent:
					"from the same moment on the instance has no present epoch, and without one it admits nothing, whatever the gate says; one that is just joining gives itself up in the turn in which it would be live",
			},
			{
				breaks: "a closed gate admits",
				before: "(present && gate.isOpen() ? present.ledger : undefined)",
				after: "present?.ledger",
			},
			{
				breaks: "an epoch that was fenced off is not settled to its end",
				before: "if (present) void retire(present, options.fencedDrainMs ?? FENCED_DRAIN_MS, why);",
				after: "",
			},
		],
	},
];
