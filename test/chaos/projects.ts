import { newId } from "../../src/base/id.ts";
import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import type { CapPeriod } from "../../src/keys/cap-period.ts";
import { updateKey } from "../../src/keys/key-admin.ts";
import { archiveProject, createProject, type ProjectSettings, updateProject } from "../../src/keys/project-admin.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import type { Random } from "../support/random.ts";
import { nowMs } from "../support/wait.ts";
import type { Fleet } from "./fleet.ts";
import type { ClosedSpan, LoadKey, NewKey } from "./load.ts";

/**
 * A change that may apply from `fromMs` on and certainly applies from `inForceMs` on, which is infinite until known.
 */
interface Decided {
	readonly fromMs: number;
	inForceMs: number;
}

export interface KeyProject extends Decided {
	readonly project: string | null;
}

export interface CapStep extends Decided {
	readonly cap: number;
}

export interface LoadProject {
	readonly id: string;
	readonly account: string;
	readonly period: CapPeriod;
	/** True if the project's cap is changed or the project archived. */
	readonly isChanged: boolean;
	readonly isArchived: boolean;
	/** Caps of the project in order; the last one is the current cap. */
	readonly caps: CapStep[];
}

export interface ProjectDeps {
	readonly accounts: readonly string[];
	readonly period: CapPeriod | undefined;
	isStopping(): boolean;
	addKey(account: string, key: NewKey): Promise<LoadKey>;
	insist<T>(work: () => Promise<T>): Promise<T>;
	/** Waits until the change is effective. From then on no request of `subject` may be admitted. */
	close(subject: string, change: () => Promise<AppendedEntry>, isCap?: boolean): Promise<ClosedSpan>;
	retire(key: LoadKey): void;
}

/** A cap in nano-dollars that is never reached, followed by a cap of some ten requests. */
const ROOMY = 50_000_000_000;
export const TIGHT_CAP = 3_000_000;
/** Largest raise of a cap in nano-dollars. */
const RAISED_BY = 2_000_000;
/** A cap that is lower than any reservation. */
const NOTHING = 1;

/** Projects by account index: the third, sixth and ninth are poor, the first two are suspended at times. */
const PLAN: readonly {
	account: number;
	cap: number;
	period: CapPeriod;
	changes?: boolean;
	/** True if the account's last key moves between its projects. */
	moves?: boolean;
	keys: readonly NewKey[];
}[] = [
	{ account: 3, cap: ROOMY, period: "lifetime", keys: [{}] },
	{ account: 4, cap: ROOMY, period: "day", keys: [{}, { cap: ROOMY, period: "week" }] },
	{ account: 4, cap: ROOMY, period: "lifetime", moves: true, keys: [{}] },
	{ account: 1, cap: TIGHT_CAP, period: "day", keys: [{}] },
	{ account: 6, cap: TIGHT_CAP, period: "day", keys: [{}, { cap: TIGHT_CAP, period: "day" }] },
	{ account: 7, cap: TIGHT_CAP, period: "lifetime", changes: true, moves: true, keys: [{}, {}] },
	{ account: 7, cap: TIGHT_CAP, period: "month", changes: true, moves: true, keys: [{}, {}] },
];

/** Creates projects with several keys each in the accounts of a run. All times are those of `nowMs`. */
export async function startProjects(fleet: Fleet, deps: ProjectDeps) {
	const { insist, close } = deps;
	const projects: LoadProject[] = [];
	const steady: string[] = [];
	const changed: LoadProject[] = [];
	const moved: LoadKey[] = [];
	const periodOf = (period: CapPeriod) => (period === "lifetime" ? period : (deps.period ?? period));

	async function add(
		account: string,
		cap: number,
		period: CapPeriod,
		isChanged: boolean,
		isArchived = false,
	): Promise<LoadProject> {
		const settings = { name: "test", capNanoUsd: nanoUsd(cap), capPeriod: period };
		const id = newId("proj");
		await insist(() => createProject(fleet.statements, account, settings, id));
		const project = { id, account, period, isChanged, isArchived, caps: [{ cap, fromMs: 0, inForceMs: 0 }] };
		projects.push(project);
		return project;
	}

	for (const { account: place, cap, period, changes, moves, keys } of PLAN) {
		const account = deps.accounts[place] as string;
		const project = await add(account, cap, periodOf(period), changes ?? false);
		if (changes) changed.push(project);
		for (const [at, key] of keys.entries()) {
			const settings = { ...key, period: periodOf(key.period ?? "lifetime"), project: project.id };
			const made = await deps.addKey(account, settings);
			if (moves && at === keys.length - 1) moved.push(made);
			else if (cap === ROOMY) steady.push(made.id);
		}
	}

	const update = (project: LoadProject, changes: ProjectSettings) => () =>
		updateProject(fleet.statements, { id: project.id }, changes);

	async function setCap(project: LoadProject, cap: number): Promise<void> {
		const step: CapStep = { cap, fromMs: nowMs(), inForceMs: Number.POSITIVE_INFINITY };
		project.caps.push(step);
		const entry = await insist(update(project, { capNanoUsd: nanoUsd(cap) }));
		await insist(() => fleet.applied(entry));
		step.inForceMs = nowMs();
	}

	const raised = ({ caps }: LoadProject, random: Random) =>
		(caps.at(-1)?.cap ?? 0) + Math.floor(random.between(1, RAISED_BY));

	/** Lowers a cap to nearly nothing for a while, just after it was raised and instances drew credit. */
	async function cut(project: LoadProject, random: Random): Promise<void> {
		const highest = raised(project, random) + RAISED_BY;
		await setCap(project, highest);
		await Bun.sleep(random.between(0, 200));
		const step: CapStep = { cap: NOTHING, fromMs: nowMs(), inForceMs: Number.POSITIVE_INFINITY };
		project.caps.push(step);
		const closed = await close(project.id, update(project, { capNanoUsd: nanoUsd(NOTHING) }), true);
		step.inForceMs = closed.fromMs;
		await Bun.sleep(random.between(100, 800));
		closed.untilMs = nowMs();
		await setCap(project, highest);
	}

	async function move(key: LoadKey, project: string | null): Promise<void> {
		const home: KeyProject = { project, fromMs: nowMs(), inForceMs: Number.POSITIVE_INFINITY };
		key.homes.push(home);
		const entry = await insist(() => updateKey(fleet.statements, key, { projectId: project }));
		await insist(() => fleet.applied(entry));
		home.inForceMs = nowMs();
	}

	/** Moves a key to another project of its account, or out of all projects. */
	async function moveOne(key: LoadKey, random: Random): Promise<void> {
		const own = projects.filter(({ account, isArchived }) => account === key.account && !isArchived);
		const others = [...own.map(({ id }) => id), null].filter((id) => id !== key.homes.at(-1)?.project);
		await move(key, random.pick(others));
	}

	async function archive(account: string, random: Random): Promise<void> {
		const doomed = await add(account, TIGHT_CAP, periodOf("week"), true, true);
		const key = await insist(() => deps.addKey(account, { project: doomed.id }));
		await Bun.sleep(random.between(100, 500));
		await close(doomed.id, () => archiveProject(fleet.statements, doomed));
		deps.retire(key);
	}

	return {
		projects,
		/** Keys that are never moved, in projects with spare credit. */
		steady,
		/** Moves keys, changes caps and archives projects until the load stops. */
		async change(random: Random) {
			const acts = [
				() => moveOne(random.pick(moved), random),
				() => moveOne(random.pick(moved), random),
				() => archive(random.pick(deps.accounts), random),
				() => raise(random.pick(changed)),
				() => raise(random.pick(changed)),
				() => cut(random.pick(changed), random),
			];
			const raise = (project: LoadProject) => setCap(project, raised(project, random));
			// Runs each kind of change once in random order, repeatedly.
			for (let queue: typeof acts = []; !deps.isStopping(); await Bun.sleep(random.between(50, 500))) {
				if (queue.length === 0) queue = random.shuffled(acts);
				await queue.pop()?.();
			}
		},
	};
}
