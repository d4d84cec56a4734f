import type { Gate } from "../../src/cluster/gate.ts";
import type { HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import type { JournalDisk, JournalFile } from "../../src/ledger/journal-disk.ts";
import { RecordKind } from "../../src/ledger/journal-record.ts";
import type { JournalRoot } from "../../src/ledger/journal-root.ts";
import type { ModelStore } from "./model-store.ts";
import type { ServerFlaws } from "./server.ts";
import type { DelicateMoment } from "./world.ts";

/** A fault in the source that the simulation must detect. There is one of each kind. */
export interface Mutant {
	readonly name: string;
	/** Pattern of the failure by which the fault must be detected; other failures do not count. */
	readonly check: RegExp;
	/** First seed to try; 1 by default. */
	readonly seed?: number;
	/** Settings of the world, if few worlds show the fault. */
	readonly world?: { readonly delicate?: DelicateMoment; readonly lonely?: boolean; readonly deafness?: number };
	readonly flaws?: ServerFlaws;
	readonly projects?: true;
	/** True if only a world with lowered limits shows the fault. */
	readonly cuts?: true;
	/** True if only a world whose server goes back in time shows the fault. */
	readonly back?: true;
	/** True if instances treat each key as one without a project. */
	readonly forgetsProjects?: true;
	model?(model: ModelStore): ModelStore;
	gate?(gate: Gate): Gate;
	home?(home: JournalRoot): JournalRoot;
	heartbeats?(store: HeartbeatStore): HeartbeatStore;
}

const LEASE_OVER = "the lease is over";
const AFTER_REVOCATION = /admitted key \S+ after its revocation had returned/;

/** Counts requests, so that repeated ones get different ids. */
let copies = 0;
const renamed = <T extends { readonly op: string }>(requests: readonly T[]) =>
	requests.map((request) => ({ ...request, op: `${request.op} ${++copies}` }));

export const mutants: readonly Mutant[] = [
	{
		name: "a project's budget is forgotten when a request is admitted",
		check: /^project \S+ has drawn/,
		seed: 3,
		projects: true,
		forgetsProjects: true,
	},
	{
		name: "usage of a project's key is not settled on the project",
		check: /were refused since .* though/,
		seed: 2,
		projects: true,
		model: (model) => ({
			...model,
			flush: (id, epoch, settled, openJson) =>
				model.flush(
					id,
					epoch,
					settled.map((event) => ({ ...event, budgets: event.budgets?.filter((one) => !one.startsWith("proj_")) })),
					openJson,
				),
		}),
	},
	{
		name: "a repeated settlement counts twice",
		check: /^budget \S+ has drawn/,
		seed: 6,
		model: (model) => ({
			...model,
			flush(id, epoch, settled, openJson) {
				for (const event of settled) model.usage.delete(event.id);
				return model.flush(id, epoch, settled, openJson);
			},
		}),
	},
	{
		name: "a repeated return counts twice",
		check: /its lease says/,
		seed: 7,
		model: (model) => ({ ...model, giveBack: (id, epoch, requests) => model.giveBack(id, epoch, renamed(requests)) }),
	},
	{
		name: "a repeated grant is granted twice",
		check: /its lease says/,
		seed: 15,
		model: (model) => ({
			...model,
			grant: (id, epoch, requests) =>
				model.grant(id, epoch, renamed(requests)).map((reply) => ({ ...reply, op: reply.op.replace(/ .*/, "") })),
		}),
	},
	{
		name: "leases are reclaimed when an instance's lease runs out",
		check: /^budget \S+ wrote off/,
		seed: 47,
		world: { delicate: "cut off", lonely: false },
		flaws: { reclaimsOnExpiry: true },
	},
	{
		name: "a fence uses the wall clock of the database",
		check: AFTER_REVOCATION,
		seed: 27,
		world: { delicate: "renewal", lonely: true, deafness: 0.9 },
		flaws: { fenceByWallClock: true },
	},
	{
		name: "an instance goes live without holding the control log",
		check: AFTER_REVOCATION,
		seed: 52,
		world: { delicate: "go live", lonely: true, deafness: 0.9 },
		flaws: { goLiveWithoutLock: true },
	},
	{
		name: "the gate does not close at its deadline",
		check: AFTER_REVOCATION,
		seed: 76,
		world: { delicate: "cut off", lonely: true, deafness: 0.9 },
		gate: (gate) => ({ ...gate, isOpen: () => (gate.reason() ?? LEASE_OVER).startsWith(LEASE_OVER) }),
	},
	{
		name: "settlements are not journalled",
		check: /was settled at .* recorded at/,
		seed: 3,
		home: (home) =>
			withFiles(home, (file) => ({
				...file,
				append(bytes, length) {
					if (bytes[KIND_AT] !== RecordKind.settle) file.append(bytes, length);
				},
			})),
	},
	{
		name: "an instance handles a lowered limit like a raised one",
		check: /since its limit was lowered/,
		cuts: true,
		heartbeats: (store) => ({
			...store,
			async readAfter(seq) {
				const entries = await store.readAfter(seq);
				return entries.map((entry) => ({ ...entry, payload: { ...entry.payload, lowered: false } }));
			},
		}),
	},
	{
		name: "a sync of the journal does nothing",
		check: /was settled at .* recorded at/,
		seed: 16,
		home: (home) => withFiles(home, (file) => ({ ...file, sync: () => Promise.resolve() })),
	},
];

/** Position of a record's kind in bytes, after length and checksum. */
const KIND_AT = 8;

function withFiles(home: JournalRoot, wrap: (file: JournalFile) => JournalFile): JournalRoot {
	const wrapDisk = (disk: JournalDisk): JournalDisk => ({ ...disk, create: (name) => wrap(disk.create(name)) });
	return {
		...home,
		claim(id, epoch, options) {
			const claim = home.claim(id, epoch, options);
			return claim && { ...claim, disk: wrapDisk(claim.disk) };
		},
	};
}
