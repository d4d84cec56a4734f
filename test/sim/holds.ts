import type { World } from "./world.ts";

/** Milliseconds for which a row stays locked, as by a stopped transaction or a hanging console. */
const HOLD_MS = [50, 400, 3_000, 12_000];

/** Now and then locks rows of one account: its budgets, leases or running requests. */
export function lockRowsAtRandom(world: World, untilMs: number): void {
	const { random, timeline, model, database } = world;
	const held = new Set<string>();
	const meanMs = random.pick([1_000, 4_000]);

	function next(): void {
		timeline.after(-Math.log(1 - random.fraction()) * meanMs, "hold", () => {
			if (timeline.nowMs() >= untilMs) return;
			hold();
			next();
		});
	}

	function hold(): void {
		const account = random.pick(["acc1", "acc2"]);
		const names = rowsOf(account).filter(() => random.chance(0.5));
		const fresh = names.filter((name) => !held.has(name));
		if (fresh.length === 0) return;
		const forMs = Math.min(random.fraction() * random.pick(HOLD_MS), untilMs - timeline.nowMs());
		world.count("rows held");
		world.log?.(`${timeline.nowMs().toFixed(1)} HELD for ${forMs.toFixed(0)} ms: ${fresh.join(", ")}`);
		const state = world.heldRows.get(account) ?? { rows: 0, untilMs: 0 };
		world.heldRows.set(account, state);
		state.rows += fresh.length;
		const letGo = database.hold(fresh);
		for (const name of fresh) held.add(name);
		timeline.after(forMs, "let go", () => {
			letGo();
			for (const name of fresh) held.delete(name);
			state.rows -= fresh.length;
			state.untilMs = timeline.nowMs();
		});
	}

	function rowsOf(account: string): string[] {
		const budgets = [...model.budgets.values()].filter((budget) => budget.account === account).map(({ id }) => id);
		const kind = random.pick(["budget", "lease", "reservation"] as const);
		if (kind === "budget") return budgets.map((id) => `budget ${id}`);
		if (kind === "lease") {
			return [...model.leases].filter(([, lease]) => budgets.includes(lease.budget)).map(([key]) => `lease ${key}`);
		}
		return [...model.reservations].filter(([, row]) => row.account === account).map(([id]) => `reservation ${id}`);
	}

	next();
}
