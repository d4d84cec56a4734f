import { cpSync } from "node:fs";
import { basename, join } from "node:path";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { PROGRAM, type Program } from "../cli/run-cli.ts";
import { createRandom, type Random } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import type { SentRequest } from "./chat-client.ts";
import { type Arrival, startCountingUpstream } from "./counting-upstream.ts";
import { databaseFaults, type Fault, instanceFaults, versionFaults } from "./faults.ts";
import { areJournalsReplayed, type Fleet, startFleet } from "./fleet.ts";
import { startLoad } from "./load.ts";
import { judgeMidnight, type Midnight, midnightFaults, renewalAt } from "./midnight.ts";
import { startOwnPostgres } from "./own-postgres.ts";
import { judgeProjects } from "./project-verdict.ts";
import { judgeRepeats, startRepeats } from "./repeats.ts";
import { createTouched, type Touched } from "./touched.ts";
import { type Finding, judgeBooks, usageRows } from "./verdict.ts";
import { judgeWarm } from "./warm.ts";

export interface ChaosOptions {
	seed: number;
	/** Duration of the faults in milliseconds. The start and the verdict take additional time. */
	forMs: number;
	/** Number of instances; 3 by default. */
	instances?: number;
	users?: number;
	restMsMax?: number;
	/** Extends the run until this many complete answers and kinds of faults were seen: a busy machine serves fewer. */
	atLeast?: { readonly answers: number; readonly faults: number };
	/** Program of the previous version. Instances then switch between both versions. */
	former?: Program;
	/** A midnight during the run, at which daily caps end and faults happen. */
	midnight?: Midnight;
	/** Folder for the logs of instances and PostgreSQL if a claim or the run fails. */
	logFolder?: string;
	onFault?: (name: string) => void;
}

export type ChaosResult = Awaited<ReturnType<typeof runChaos>>;

/** Longest wait in milliseconds for the last leases, restarts and flushes. */
const QUIESCE_MS = 30_000;
/** Longest extension of a run with too little activity, in multiples of the run's length. */
const LONGER_MAX = 4;

/**
 * Runs instances, a database and an upstream as real processes under traffic and faults. Returns claims that hold or
 * not; throws only if the run itself fails.
 */
export async function runChaos(options: ChaosOptions) {
	const random = createRandom(options.seed);
	const ends: (() => Promise<unknown>)[] = [];
	let isFine = false;
	try {
		const postgres = await startOwnPostgres();
		ends.push(() => postgres.destroy());
		const upstream = await startCountingUpstream({
			gapMsMax: 6,
			failures: 0.03,
			seed: options.seed,
			...(options.midnight ? { slow: 0.05 } : {}),
		});
		ends.push(() => upstream.stop());
		const { former, midnight } = options;
		const fleet = await startFleet({
			databaseUrl: postgres.url,
			upstreamUrl: upstream.url,
			instances: options.instances ?? 3,
			...(former === undefined ? {} : { program: former }),
		});
		ends.push(() => fleet.stop());
		ends.push(async () => {
			if (isFine || options.logFolder === undefined) return;
			for (const { logPath } of [postgres, ...fleet.members])
				cpSync(logPath, join(options.logFolder, basename(logPath)));
		});
		const load = await startLoad(fleet, random.fork(), {
			users: options.users ?? 24,
			...(options.restMsMax === undefined ? {} : { restMsMax: options.restMsMax }),
			accounts: 9,
			regulars: 1,
			projects: midnight ? { period: "day" } : {},
			...(midnight ? { timeZone: midnight.timeZone } : {}),
		});

		const repeats = await startRepeats(fleet, random.fork(), Math.ceil((options.users ?? 24) / 6));
		const touched = createTouched();
		const watching = touched.watch(fleet);
		ends.push(() => watching.stop());
		const made: Record<string, number> = {};
		const untilMs = performance.now() + options.forMs;
		const { answers: answersMin = 0, faults: faultsMin = 0 } = options.atLeast ?? {};
		const lacks = () => Object.keys(made).length < faultsMin || (answersOf(load.sent)["200 whole"] ?? 0) < answersMin;
		const isOn = () => {
			const overMs = performance.now() - untilMs;
			return overMs < 0 || (overMs < LONGER_MAX * options.forMs && lacks());
		};
		const midway: Finding[] = [];
		const due = midnight && midnightFaults(midnight, { fleet, postgres, touched }, random.fork());
		const lanes = [
			lane(random.fork(), (own) => memberFaults(fleet, own, touched, former), 800, due?.member),
			lane(random.fork(), (own) => databaseFaults(postgres, own, touched), 3_000, due?.database),
		];
		await Promise.all([...lanes.map((run) => run(isOn, made, options.onFault)), watchBooks()]);

		/** Checks the books repeatedly during the run, not only at its end. */
		async function watchBooks(): Promise<void> {
			let looks = 0;
			const broken = new Set<string>();
			while (isOn()) {
				await Bun.sleep(500);
				const books = await reconcile(fleet.statements).catch(() => undefined);
				if (books) looks += 1;
				for (const check of books?.checks ?? []) if (!check.ok) broken.add(`${check.name}: ${check.detail}`);
			}
			midway.push({ claim: "the books reconcile at every moment", checked: looks, broken: [...broken] });
		}

		await Promise.all([load.stop(), repeats.stop()]);
		await watching.stop();
		const exits = await Promise.all(
			fleet.members.map((member) => inTime(member.stop("SIGINT"), `instance ${member.index}`)),
		);
		// A crash late in the run leaves a journal, which the next start of the same instance replays.
		const again = fleet.members.filter((member) => member.journals().length > 0);
		await Promise.all(again.map((member) => member.start()));
		await waitFor(() => areJournalsReplayed(again), "journals of deaths to be handed in", 30_000);
		await Promise.all(again.map((member) => inTime(member.stop("SIGINT"), `instance ${member.index} again`)));
		const arrivals = await upstream.report();
		const renewal = midnight && renewalAt(midnight);
		const warm = judgeWarm(
			load.sent,
			arrivals,
			load.steady,
			(member) => touched.excuses(member),
			new Map(renewal ? load.renewed().map((key) => [key, renewal]) : []),
		);
		const rows = await usageRows(fleet);
		const known = new Set(load.keys.map(({ id }) => id));
		const ofLoad = rows.filter((row) => known.has(row.key_id));
		const excuses = fleet.members.flatMap(({ index }) => touched.excuses(index));
		const findings = [
			...midway,
			{
				claim: "every instance ended cleanly",
				checked: exits.length,
				broken: exits.filter((code) => code !== 0).map(String),
			},
			warm.finding,
			...(await judgeBooks(fleet, load, arrivals)),
			...judgeRepeats(repeats.all, rows),
			...(await judgeProjects(fleet, load, ofLoad, arrivals, excuses)),
			...(midnight ? judgeMidnight(midnight, load, rows, touched) : []),
		];
		const [sums] = await fleet.sql`
			select coalesce(sum(charged_nano_usd), 0)::text as charged from usage_event`;
		const endings =
			await fleet.sql`select ending || ' ' || basis as what, count(*)::int from usage_event group by 1 order by 1`;
		isFine = findings.every((finding) => finding.broken.length === 0);
		return {
			seed: options.seed,
			findings,
			faults: made,
			/** Number of answers by status and error code, including "client left" and "cut off". */
			answers: answersOf(load.sent),
			/** Number of refusals of untouched customers' requests, by error code and cause. */
			refusals: warm.causes,
			endings: Object.fromEntries(endings.map((row) => [row.what as string, row.count as number])),
			requests: load.sent.length,
			tokens: tokensOf(arrivals),
			chargedNanoUsd: Number(sums?.charged),
			/** Durations of revocations and suspensions in milliseconds. */
			closings: load.closed.map((one) => one.tookMs),
		};
	} finally {
		for (const end of ends.reverse()) await end();
	}
}

/** Faults of one instance. With two versions, every second instance also switches between them. */
function memberFaults(fleet: Fleet, random: Random, touched: Touched, former: Program | undefined): Fault[] {
	const faults = instanceFaults(fleet, random, touched);
	if (former === undefined) return faults;
	const changes = versionFaults(fleet, random, touched, [former, PROGRAM]);
	return faults.flatMap((fault, at) => [fault, changes[at % changes.length] as Fault]);
}

/** Runs one fault after another: first those that are due, otherwise each kind once in random order, repeatedly. */
function lane(
	random: Random,
	faultsOf: (random: Random) => Fault[],
	pauseMsMax: number,
	due?: () => Fault | undefined,
) {
	const faults = faultsOf(random);
	return async (isOn: () => boolean, made: Record<string, number>, onFault?: (name: string) => void) => {
		for (let queue = random.shuffled(faults); isOn(); ) {
			const fault = due?.() ?? queue.pop();
			if (fault === undefined) {
				queue = random.shuffled(faults);
				continue;
			}
			made[fault.name] = (made[fault.name] ?? 0) + 1;
			onFault?.(fault.name);
			await fault.run();
			await Bun.sleep(random.between(0, pauseMsMax));
		}
	};
}

function answersOf(sent: readonly SentRequest[]): Record<string, number> {
	const answers: Record<string, number> = {};
	for (const one of sent) {
		const end = one.complete ? "whole" : one.left ? "client left" : (one.code ?? "cut off");
		const name = `${one.status === 0 ? "no answer" : one.status} ${end}`;
		answers[name] = (answers[name] ?? 0) + 1;
	}
	return answers;
}

function tokensOf(arrivals: readonly Arrival[]): number {
	return arrivals.reduce((sum, { sent }) => sum + sent, 0);
}

async function inTime<T>(work: Promise<T>, what: string): Promise<T> {
	let timer: Timer | undefined;
	const late = new Promise<never>((_, reject) => {
		timer = setTimeout(() => reject(new Error(`${what} did not end within ${QUIESCE_MS} ms`)), QUIESCE_MS);
	});
	return await Promise.race([work, late]).finally(() => clearTimeout(timer));
}
