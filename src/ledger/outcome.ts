import type { NanoUsd } from "../money/nano-usd.ts";
import type { AdmittedEvent, SettledEvent, UsageCounts } from "./event.ts";
import { COUNT_NAMES, USAGE_FIELD_NAMES, type UsageFieldName, usageField } from "./usage-fields.ts";

/** How a request ended. `costNanoUsd` is the actual cost; the part that credit does not cover is written off. */
export type Outcome = Omit<SettledEvent, keyof AdmittedEvent | "charged" | "off"> & { readonly costNanoUsd: NanoUsd };

/** Fields that the ledger itself computes at settlement. */
const SET_BY_LEDGER: ReadonlySet<string> = new Set(["reserved", "charged", "off"]);

const sourceOf = (name: UsageFieldName) =>
	SET_BY_LEDGER.has(name) ? name : `${usageField(name).known === "end" ? "outcome" : "admitted"}.${name}`;

/**
 * Builds a settlement. Compiled from the table of fields to one object literal: a spread or a loop takes 9 to 60 times
 * as long per request.
 */
export const settledEvent = new Function(
	...["admitted", "outcome", "reserved", "charged", "off"],
	`return { ${USAGE_FIELD_NAMES.map((name) => `${name}: ${sourceOf(name)}`).join(", ")} };`,
) as (admitted: AdmittedEvent, outcome: Outcome, reserved: NanoUsd, charged: NanoUsd, off: NanoUsd) => SettledEvent;

/** How much of its answer a running request may have delivered: its cost is from `delivered` to `bound`. */
export interface Progress {
	readonly delivered: NanoUsd;
	/** Most that the delivered part may cost until the next progress record. */
	readonly bound: NanoUsd;
	/** Prompt tokens whose cost is part of `delivered`. */
	readonly promptTokens: number;
	readonly completionTokens: number;
}

export const NO_USAGE = Object.fromEntries(COUNT_NAMES.map((name) => [name, 0])) as unknown as UsageCounts;
