import type { Gate } from "../../src/cluster/gate.ts";
import type { HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import type { JournalDisk, JournalFile } from "../../src/ledger/journal-disk.ts";
import type { JournalHome } from "../../src/ledger/journal-home.ts";
import { RecordKind } from "../../src/ledger/journal-record.ts";
import type { ModelStore } from "./model-store.ts";
import type { ServerFlaws } from "./server.ts";
import type { Delicate } from "./world.ts";

/** A defect that the simulation must detect: one of each kind. */
export interface Mutant {
	readonly name: string;
	/** Whose world shows it soon: the search begins there. Default 1. */
	readonly seed?: number;
	/** What its world is like, where few are such that it shows. */
	readonly world?: { readonly delicate?: Delicate; readonly lonely?: boolean; readonly deafness?: number };
	readonly flaws?: ServerFlaws;
	/** Only a world with projects can show it. */
	readonly projects?: true;
	/** Only one in which limits are lowered. */
	readonly cuts?: true;
	/** Instances take each key for its account's own. */
	readonly forgetsProjects?: true;
	model?(model: ModelStore): ModelStore;
	gate?(gate: Gate): Gate;
	home?(home: JournalHome): JournalHome;
	heartbeats?(store: HeartbeatStore): HeartbeatStore;
}

export const mutants: readonly Mutant[] = [
	{
		name: "a project's budget is forgotten when a request is admitted",
		seed: 3,
		projects: true,
		forgetsProjects: true,
	},
	{
		name: "what a project's key used is not settled on the project",
		seed: 2,
		projects: true,
		model: (model) => ({
			...model,
			flush(id, epoch, settled, openJson) {
				const ofProject = (budget: string) => budget.startsWith("proj_");
				const events = settled.map((event) => ({
					...event,
					budgets: event.budgets?.filter((budget) => !ofProject(budget)),
				}));
				return model.flush(id, epoch, events, openJson);
			},
		}),
	},
	{
		name: "a settlement that is repeated counts again",
		seed: 5,
		model: (model) => ({
			...model,
			flush(id, epoch, settled, openJson) {
				for (const event of settled) model.usage.delete(event.id);
				return model.flush(id, epoch, settled, openJson);
			},
		}),
	},
	{
		name: "leases are reclaimed when an instance's lease runs out",
		seed: 38,
		world: { delicate: "cut off", lonely: false },
		flaws: { reclaimsOnExpiry: true },
	},
	{
		name: "a fence goes by the wall clock of the database",
		seed: 27,
		world: { delicate: "renewal", lonely: true, deafness: 0.9 },
		flaws: { fenceByWallClock: true },
	},
	{
		name: "an instance goes live without holding the control log",
		seed: 52,
		world: { delicate: "go live", lonely: true, deafness: 0.9 },
		flaws: { goLiveWithoutLock: true },
	},
	{
		name: "the gate does not close by its deadline",
		seed: 53,
		world: { delicate: "cut off", lonely: true, deafness: 0.9 },
		gate(gate) {
			let open = false;
			let final = false;
			return {
				...gate,
				isOpen: () => open,
				extend(mark, forMs) {
					gate.extend(mark, forMs);
					open = !final;
				},
				close(reason, forGood = false) {
					gate.close(reason, forGood);
					open = false;
					final ||= forGood;
				},
			};
		},
	},
	{
		name: "settlements are not journalled",
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
		name: "an instance hears of a lowered limit as of any other",
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
		seed: 16,
		home: (home) => withFiles(home, (file) => ({ ...file, sync: () => Promise.resolve() })),
	},
];

/** Where a record's kind stands, behind length and checksum. */
const KIND_AT = 8;

function withFiles(home: JournalHome, wrap: (file: JournalFile) => JournalFile): JournalHome {
	const wrapDisk = (disk: JournalDisk): JournalDisk => ({ ...disk, create: (name) => wrap(disk.create(name)) });
	return {
		...home,
		claim(id, epoch, options) {
			const claim = home.claim(id, epoch, options);
			return claim && { ...claim, disk: wrapDisk(claim.disk) };
		},
	};
}
