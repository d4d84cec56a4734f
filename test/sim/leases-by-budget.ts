import type { ModelLease } from "./model-store.ts";

/** All leases, and those of each budget: the check after each step reads those of one budget only. */
export class LeasesByBudget extends Map<string, ModelLease> {
	readonly #byBudget = new Map<string, Map<string, ModelLease>>();

	of(budget: string): Iterable<ModelLease> {
		return this.#byBudget.get(budget)?.values() ?? [];
	}

	override set(key: string, lease: ModelLease): this {
		const own = this.#byBudget.get(lease.budget) ?? new Map();
		this.#byBudget.set(lease.budget, own.set(key, lease));
		return super.set(key, lease);
	}

	override delete(key: string): boolean {
		const lease = this.get(key);
		if (lease) this.#byBudget.get(lease.budget)?.delete(key);
		return super.delete(key);
	}

	override clear(): void {
		this.#byBudget.clear();
		super.clear();
	}
}
