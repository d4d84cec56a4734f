import { assert } from "../base/assert.ts";
import { type NanoUsd, nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { CapPeriod, KnownPeriod } from "./cap-period.ts";

export type ProjectState = "active" | "archived";

/** The limits that keys and projects have in common. */
export interface LimitedEntry {
	name: string;
	/** Null: no cap. */
	capNanoUsd: NanoUsd | null;
	capPeriod: CapPeriod;
	period: KnownPeriod | null;
	/** Null: all models. */
	models: ReadonlySet<string> | null;
	/** Of a project: for all its keys together. */
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
}

/** The limits as the SQL functions `key_fields` and `project_fields` write them. */
export interface LimitedFields {
	name: string;
	capNanoUsd: number | null;
	capPeriod: CapPeriod;
	models: readonly string[] | null;
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
}

/** A project for admission: one object for all its keys, changed in place. */
export interface ProjectEntry extends LimitedEntry {
	readonly id: string;
	/** Keys of an archived project are refused. */
	state: ProjectState;
}

/** The project as the SQL function `project_fields` writes it: the payload of control entries of kind `project`. */
export interface ProjectFields extends LimitedFields {
	state: ProjectState;
}

export function createProjectEntry(id: string, fields: ProjectFields): ProjectEntry {
	return setProjectFields({ id, state: "archived", ...limitsOf(fields) }, fields);
}

export function setProjectFields(entry: ProjectEntry, fields: ProjectFields): ProjectEntry {
	assert(fields.state === "active" || fields.state === "archived", "a project is active or archived");
	return Object.assign(entry, { state: fields.state }, limitsOf(fields));
}

export function limitsOf(fields: LimitedFields): LimitedEntry {
	return {
		name: fields.name,
		capNanoUsd: fields.capNanoUsd === null ? null : nanoUsdOfColumn(fields.capNanoUsd),
		capPeriod: fields.capPeriod,
		period: null,
		models: fields.models === null || fields.models.length === 0 ? null : new Set(fields.models),
		requestsPerMinute: fields.requestsPerMinute,
		concurrencyMax: fields.concurrencyMax,
	};
}
