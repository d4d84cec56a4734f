import { assert } from "../base/assert.ts";
import type { NanoUsd } from "../money/nano-usd.ts";
import { nanoUsdOfColumn } from "../money/nano-usd.ts";
import type { CapPeriod, KnownPeriod } from "./cap-period.ts";

export type ProjectState = "active" | "archived";

/** A project for admission: one object for all its keys, changed in place. */
export interface ProjectEntry {
	readonly id: string;
	name: string;
	/** Keys of an archived project are refused. */
	state: ProjectState;
	capNanoUsd: NanoUsd | null;
	capPeriod: CapPeriod;
	period: KnownPeriod | null;
	/** Null: all models. */
	models: ReadonlySet<string> | null;
	/** For all its keys together. */
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
}

/** The project as the SQL function `project_fields` writes it: the payload of control entries of kind `project`. */
export interface ProjectFields {
	name: string;
	state: ProjectState;
	capNanoUsd: number | null;
	capPeriod: CapPeriod;
	models: readonly string[] | null;
	requestsPerMinute: number | null;
	concurrencyMax: number | null;
}

export function createProjectEntry(id: string, fields: ProjectFields): ProjectEntry {
	const entry: ProjectEntry = {
		id,
		name: "",
		state: "archived",
		capNanoUsd: null,
		capPeriod: "lifetime",
		period: null,
		models: null,
		requestsPerMinute: null,
		concurrencyMax: null,
	};
	setProjectFields(entry, fields);
	return entry;
}

export function setProjectFields(entry: ProjectEntry, fields: ProjectFields): void {
	assert(fields.state === "active" || fields.state === "archived", "a project is active or archived");
	entry.name = fields.name;
	entry.state = fields.state;
	entry.capNanoUsd = fields.capNanoUsd === null ? null : nanoUsdOfColumn(fields.capNanoUsd);
	entry.capPeriod = fields.capPeriod;
	entry.period = null;
	entry.models = fields.models === null || fields.models.length === 0 ? null : new Set(fields.models);
	entry.requestsPerMinute = fields.requestsPerMinute;
	entry.concurrencyMax = fields.concurrencyMax;
}
