import { assert } from "../base/assert.ts";

/**
 * What several keys of a ring belong to, an account or a project: one entry for all of them, as long as there is one, and as
 * new as the newest control entry that was applied or read.
 */
export interface OwnerSlots<Entry extends { readonly id: string }, Fields> {
	/** For one key more. `seq`: the newest control entry that the fields reflect. */
	take(id: string, fields: Fields, seq: number): Entry;
	/** A key left. */
	leave(id: string): void;
	apply(id: string, seq: number, fields: Fields): void;
	clear(): void;
	size(): number;
}

interface OwnerSlot<Entry> {
	readonly entry: Entry;
	seq: number;
	/** Keys in the ring that point here; at 0 it goes. */
	keys: number;
}

export function createOwnerSlots<Entry extends { readonly id: string }, Fields>(
	create: (id: string, fields: Fields) => Entry,
	set: (entry: Entry, fields: Fields) => void,
): OwnerSlots<Entry, Fields> {
	const slots = new Map<string, OwnerSlot<Entry>>();

	function setAt(slot: OwnerSlot<Entry>, seq: number, fields: Fields): void {
		if (seq <= slot.seq) return;
		set(slot.entry, fields);
		slot.seq = seq;
	}

	return {
		take(id, fields, seq) {
			let slot = slots.get(id);
			if (slot === undefined) {
				slot = { entry: create(id, fields), seq, keys: 0 };
				slots.set(id, slot);
			} else setAt(slot, seq, fields);
			slot.keys += 1;
			return slot.entry;
		},
		leave(id) {
			const slot = slots.get(id);
			assert(slot !== undefined && slot.keys > 0, "a key in the ring has its owners there");
			slot.keys -= 1;
			if (slot.keys === 0) slots.delete(id);
		},
		apply(id, seq, fields) {
			const slot = slots.get(id);
			if (slot !== undefined) setAt(slot, seq, fields);
		},
		clear: () => slots.clear(),
		size: () => slots.size,
	};
}
