import type { CapPeriod } from "../../src/keys/cap-period.ts";
import { type SentRequest, uuidOf } from "./chat-client.ts";
import type { Arrival } from "./counting-upstream.ts";
import type { Fleet } from "./fleet.ts";
import type { Load, LoadKey } from "./load.ts";
import type { CapStep, LoadProject } from "./projects.ts";
import type { Excuse } from "./touched.ts";
import { costOf, type Finding, finding, lateRows, type UsageRow } from "./verdict.ts";

type Judged = Pick<Load, "sent" | "keys" | "accounts" | "closed" | "projects" | "timeZone">;

/** Tolerance in milliseconds, because times in rows are rounded to whole milliseconds. */
const ROUNDED_MS = 2;

interface Owners {
	readonly keys: ReadonlyMap<string, LoadKey>;
	readonly projects: ReadonlyMap<string, LoadProject>;
}

/** A cap of a project or period, with the changes made to it. */
interface Cap {
	readonly budget: string;
	readonly caps: readonly CapStep[];
}

/**
 * Compares four counts by project and by period of renewing caps. Call it after all instances have stopped. `excuses`:
 * times when an unreachable instance may have held credit.
 */
export async function judgeProjects(
	fleet: Fleet,
	load: Judged,
	rows: readonly UsageRow[],
	arrivals: readonly Arrival[],
	excuses: readonly Excuse[],
): Promise<Finding[]> {
	const owners = {
		keys: new Map(load.keys.map((key) => [key.id, key])),
		projects: new Map(load.projects.map((project) => [project.id, project])),
	};
	const byBudget = new Map<string, UsageRow[]>();
	for (const row of rows)
		for (const budget of [row.account_id, row.key_id, ...(row.budgets ?? [])])
			byBudget.set(budget, [...(byBudget.get(budget) ?? []), row]);
	const caps = capsOf(load, [...byBudget.keys()]);
	return [
		ofHomes(rows, owners),
		ofPeriods(rows, owners, load, arrivals),
		finding("no cap of a project or a period was ever overspent", caps, ({ budget, caps: steps }) =>
			overspent(budget, steps, byBudget.get(budget) ?? []),
		),
		...(load.closed.some(({ isCap }) => isCap) ? [ofCuts(load, rows)] : []),
		ofServed(load, owners, arrivals),
		await ofSums(fleet, load, byBudget),
		ofRefusals(load, owners, byBudget, excuses),
	];
}

const always = (cap = 0): readonly CapStep[] => [{ cap, fromMs: 0, inForceMs: 0 }];

/** Lists the lifetime cap of each project, and each period with charges. */
function capsOf(load: Judged, budgets: readonly string[]): Cap[] {
	const steps = new Map<string, { period: CapPeriod; caps: readonly CapStep[] }>();
	for (const { id, period, caps } of load.projects) steps.set(id, { period, caps });
	for (const { id, period, cap } of load.keys) if (cap !== undefined) steps.set(id, { period, caps: always(cap) });
	return budgets.flatMap((budget) => {
		const owner = steps.get(budget.split(":")[0] as string);
		const counts = owner !== undefined && (budget.includes(":") || owner.period === "lifetime");
		return counts ? [{ budget, caps: owner.caps }] : [];
	});
}

/** Requests that were admitted before a cap was raised must fit under the highest earlier cap. */
function overspent(budget: string, steps: readonly CapStep[], rows: readonly UsageRow[]): string | undefined {
	const sorted = [...rows].sort((a, b) => a.admitted_ms - b.admitted_ms);
	let spent = 0;
	let at = 0;
	let highest = 0;
	for (const [index, { cap }] of steps.entries()) {
		highest = Math.max(highest, cap);
		const untilMs = steps[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
		for (let row = sorted[at]; row !== undefined && row.admitted_ms < untilMs; row = sorted[at]) {
			spent += row.charged;
			at += 1;
		}
		if (spent > highest) return `${budget}: ${spent} of ${highest}`;
	}
	return undefined;
}

/** After this cut, the cap is lower than any reservation, so a later admission must have used an earlier cap. */
function ofCuts({ closed }: Judged, rows: readonly UsageRow[]): Finding {
	const cuts = closed.filter(({ isCap }) => isCap);
	return finding("nobody was admitted under a cap whose end had returned", cuts, (cut) => {
		const late = lateRows(rows, cut);
		const spent = late.reduce((sum, { charged }) => sum + charged, 0);
		const [first] = late;
		return first
			? `${cut.subject}: ${(first.admitted_ms - cut.fromMs).toFixed(1)} ms later, ${first.request_id}; ${spent} in ${late.length} requests`
			: undefined;
	});
}

function ofHomes(rows: readonly UsageRow[], { keys }: Owners): Finding {
	return finding("a request is booked on the project that its key belonged to, also beside moves", rows, (row) => {
		const homes = keys.get(row.key_id)?.homes ?? [];
		const possible = homesBetween(homes, row.admitted_ms - ROUNDED_MS, row.admitted_ms + ROUNDED_MS);
		return possible.includes(row.project_id) ? undefined : `${row.request_id}: ${row.project_id} of ${possible}`;
	});
}

function homesBetween(homes: LoadKey["homes"], fromMs: number, untilMs: number): (string | null)[] {
	const settled = homes.findLastIndex(({ inForceMs }) => inForceMs <= fromMs);
	return homes.filter((home, at) => at >= settled && home.fromMs <= untilMs).map(({ project }) => project);
}

/** Day in the account's time zone, computed without the product's code. */
export function dayIn(timeZone: string, atMs: number): string {
	return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short" }).format(atMs);
}

function firstDay(period: CapPeriod, day: string): string {
	if (period === "month") return `${day.slice(0, 8)}01`;
	if (period === "day") return day;
	const date = new Date(`${day}T00:00:00Z`);
	date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
	return date.toISOString().slice(0, 10);
}

/** Ids of the period budgets that a request of this key and project may use. */
function periodsAt(key: LoadKey, project: LoadProject | undefined, day: string): string[] {
	const capped = [project, key.cap === undefined ? undefined : key].filter((one) => one !== undefined);
	return capped
		.filter(({ period }) => period !== "lifetime")
		.map(({ id, period }) => `${id}:${period}:${firstDay(period, day)}`);
}

/** Checks the days of requests. Each was admitted between the client's sending and its arrival at the upstream. */
function ofPeriods(
	rows: readonly UsageRow[],
	{ keys, projects }: Owners,
	{ sent, timeZone }: Judged,
	arrivals: readonly Arrival[],
): Finding {
	const asked = new Map(sent.map((one) => [one.uuid, one.sentAtMs]));
	const arrived = new Map<string | undefined, number>();
	for (const { requestId, arrivedAtMs } of arrivals) {
		const uuid = uuidOf(requestId);
		arrived.set(uuid, Math.min(arrivedAtMs, arrived.get(uuid) ?? arrivedAtMs));
	}
	const claim = "what was reserved counts in the period in which it was reserved, whenever it was settled";
	return finding(claim, rows, (row) => {
		const key = keys.get(row.key_id);
		if (key === undefined) return `${row.request_id}: of an unknown key`;
		const project = projects.get(row.project_id ?? "");
		const days = [row.admitted_ms, asked.get(row.request_id), arrived.get(row.request_id)].map((ms) =>
			ms === undefined ? undefined : dayIn(timeZone, ms),
		);
		const [admitted = "", before = admitted, after = admitted] = days;
		const booked = (row.budgets ?? []).join(" ");
		const own = (day: string) => [...(project ? [project.id] : []), ...periodsAt(key, project, day)].join(" ");
		if (booked !== own(admitted)) return `${row.request_id}: booked on ${booked}, by its record on ${own(admitted)}`;
		return before === after && booked !== own(before)
			? `${row.request_id}: booked on ${booked}, asked and served on ${before}`
			: undefined;
	});
}

/** Compares the upstream's and the clients' counts, where project and day are certain. */
function ofServed(load: Judged, { keys, projects }: Owners, arrivals: readonly Arrival[]): Finding {
	const served = new Map(arrivals.map((arrival) => [uuidOf(arrival.requestId), arrival]));
	const spent = new Map<string, number>();
	for (const one of load.sent.filter(({ complete }) => complete)) {
		const key = keys.get(one.key);
		const arrival = served.get(one.uuid);
		if (key === undefined || arrival === undefined) continue;
		const homes = homesBetween(key.homes, one.sentAtMs, arrival.arrivedAtMs);
		const days = [one.sentAtMs, arrival.arrivedAtMs].map((ms) => dayIn(load.timeZone, ms));
		if (homes.length !== 1 || days[0] !== days[1]) continue;
		const project = projects.get(homes[0] ?? "");
		for (const budget of [...(project ? [project.id] : []), ...periodsAt(key, project, days[0] as string)])
			spent.set(budget, (spent.get(budget) ?? 0) + costOf(arrival.prompt, arrival.sent));
	}
	const claim = "nobody was served more than a project's or a period's cap, by the upstream's own count";
	return finding(claim, capsOf(load, [...spent.keys()]), ({ budget, caps }) => {
		const highest = Math.max(...caps.map(({ cap }) => cap));
		const total = spent.get(budget) ?? 0;
		return total <= highest ? undefined : `${budget}: ${total} of ${highest}`;
	});
}

async function ofSums(fleet: Fleet, load: Judged, byBudget: ReadonlyMap<string, readonly UsageRow[]>) {
	const budgets = await fleet.sql<{ id: string; spent: string; drawn: string }[]>`
		select id, budget_spent(id)::text as spent, drawn_nano_usd::text as drawn from budget
		where owner_id is not null or id = any(${load.projects.map(({ id }) => id)})`;
	const known = new Set(budgets.map(({ id }) => id));
	const none = [...byBudget.keys()].filter((id) => id.startsWith("proj_") && !known.has(id));
	const claim = "at rest what a project or a period has drawn and spent is the sum of its requests";
	return finding(claim, [...budgets, ...none.map((id) => ({ id, spent: "none", drawn: "none" }))], (budget) => {
		const sum = String((byBudget.get(budget.id) ?? []).reduce((all, { charged }) => all + charged, 0));
		return budget.spent === sum && budget.drawn === sum ? undefined : `${JSON.stringify(budget)}, requests ${sum}`;
	});
}

const LACKING: Readonly<Record<string, "account" | "project" | "key">> = {
	insufficient_quota: "account",
	project_cap_exceeded: "project",
	key_cap_exceeded: "key",
};

/**
 * Checks that each 402 matches the books: the amounts spent and held at that moment left less than a reservation. Skips
 * times in which an unreachable instance may have held credit.
 */
function ofRefusals(
	load: Judged,
	{ keys, projects }: Owners,
	byBudget: ReadonlyMap<string, readonly UsageRow[]>,
	excuses: readonly Excuse[],
): Finding {
	const most = Math.max(...[...byBudget.values()].flat().map(({ reserved }) => reserved), 0);
	const refused = load.sent.filter(
		({ code, sentAtMs, endMs = sentAtMs }) =>
			code !== undefined &&
			code in LACKING &&
			!excuses.some(({ fromMs, untilMs }) => fromMs <= endMs && sentAtMs <= untilMs),
	);
	/** Describes what the cap had left; undefined if that was too little for the request. */
	const room = (one: SentRequest, budget: string, caps: readonly CapStep[]): string | undefined => {
		const endMs = one.endMs ?? one.sentAtMs;
		const settled = caps.findLastIndex(({ inForceMs }) => inForceMs <= one.sentAtMs);
		const inForce = caps.filter(({ fromMs }, at) => at >= settled && fromMs <= endMs);
		const lowest = Math.min(...inForce.map(({ cap }) => cap));
		let used = 0;
		for (const row of byBudget.get(budget) ?? []) {
			if (row.admitted_ms > endMs + ROUNDED_MS) continue;
			const isOver = row.basis !== "recovered" && row.admitted_ms + row.duration_ms + ROUNDED_MS < one.sentAtMs;
			used += isOver ? row.charged : row.reserved;
		}
		return lowest - used >= most ? `${budget}: ${used} of ${lowest} were used, at most ${most} asked for` : undefined;
	};
	return finding("who heard that his credit or a cap is spent had none left, by the books", refused, (one) => {
		const key = keys.get(one.key);
		if (key === undefined) return "of an unknown key";
		const endMs = one.endMs ?? one.sentAtMs;
		const days = new Set([one.sentAtMs, endMs].map((ms) => dayIn(load.timeZone, ms)));
		const whose = LACKING[one.code ?? ""];
		const limits: Cap[] = [];
		if (whose === "account") limits.push({ budget: key.account, caps: always(load.accounts.get(key.account)) });
		const homes = whose === "project" ? homesBetween(key.homes, one.sentAtMs, endMs) : [];
		const owners =
			whose === "key" ? [key] : homes.map((home) => projects.get(home ?? "")).filter((home) => home !== undefined);
		for (const owner of owners) {
			const caps = "caps" in owner ? owner.caps : always(owner.cap);
			if (owner.period === "lifetime") limits.push({ budget: owner.id, caps });
			else
				for (const day of days)
					limits.push({ budget: `${owner.id}:${owner.period}:${firstDay(owner.period, day)}`, caps });
		}
		const roomy = limits.map(({ budget, caps }) => room(one, budget, caps));
		// If every possible cap had enough left, the effective cap did too, so the refusal was wrong.
		return roomy.every((text) => text !== undefined)
			? `${one.uuid}, ${one.code}: ${roomy.join(", ") || "no such cap"}`
			: undefined;
	});
}
