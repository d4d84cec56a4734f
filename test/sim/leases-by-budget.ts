import type { ModelLease } from "./model-store.ts";

/**
 * The leases of a budget, followed as they come. Whoever asks what could cover a draw asks after every step, and among all
 * leases, of each epoch and each day, those of one budget are few.
 */
export function followLeases(leases: Map<string, ModelLease>): (budget: string) => Iterable<ModelLease> {
	const byBudget = new Map<string, Map<string, ModelLease>>();
	const set = leases.set.bind(leases);
	const clear = leases.clear.bind(leases);
	leases.set = (key, lease) => {
		const own = byBudget.get(lease.budget);
		if (own) own.set(key, lease);
		else byBudget.set(lease.budget, new Map([[key, lease]]));
		return set(key, lease);
	};
	leases.clear = () => {
		byBudget.clear();
		clear();
	};
	return (budget) => byBudget.get(budget)?.values() ?? [];
}
