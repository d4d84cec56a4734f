import type { Environment } from "../base/environment-reader.ts";
import { readBrand } from "./brand-section.ts";
import { type Cors, readCors } from "./cors.ts";
import type { ModelSpec, RouteSpec } from "./model.ts";
import { readModel } from "./model-section.ts";
import { nonZeroRates, WRITTEN_UNITS, type WrittenRates } from "./rate-cards.ts";
import { readRoute } from "./routes.ts";
import { readLimits, type ServiceLimits } from "./service-limits.ts";
import { createYamlReader, quoteValue, type YamlField, type YamlProblem, type YamlReader } from "./yaml-reader.ts";

export interface CatalogFile {
	readonly models: readonly ModelSpec[];
	readonly routes: readonly RouteSpec[];
	readonly limits: ServiceLimits;
	readonly cors: Cors;
	readonly warnings: readonly YamlProblem[];
}

/** A `tollgate.yaml` with mistakes; `problems` has all of them, ordered by line. */
export class CatalogFileError extends Error {
	override readonly name = "CatalogFileError" as const;
	readonly problems: readonly YamlProblem[];

	constructor(problems: readonly YamlProblem[]) {
		super(describeProblems(problems));
		this.problems = problems;
	}
}

/** Largest file in characters; a larger file is refused without parsing. */
const FILE_LENGTH_MAX = 4 * 1024 * 1024;
const MODELS_MAX = 1000;
const ROUTES_MAX = 100;

/**
 * Parses the text of a `tollgate.yaml`. `${NAME}` in a value is replaced by a variable of `env`. Top-level fields that
 * begin with `x-` are ignored, so they may contain anchors. @throws CatalogFileError with all mistakes.
 */
export function parseCatalogFile(text: string, env: Environment): CatalogFile {
	if (text.length > FILE_LENGTH_MAX) {
		throw new CatalogFileError([{ line: 0, message: `the file is longer than ${FILE_LENGTH_MAX} characters` }]);
	}
	const reader = createYamlReader(text, env);
	const file = reader.map(reader.root, ["models", "routes", "limits", "cors", "brand"], (name) =>
		name.startsWith("x-"),
	);
	const models: ModelSpec[] = [];
	const names = new Map<string, number>();
	const claimAt =
		({ path }: YamlField) =>
		(name: string, line: number) =>
			claim(reader, names, name, { line, path });
	for (const field of reader.list(file?.require("models"), MODELS_MAX) ?? []) {
		const model = readModel(reader, field, claimAt(field));
		if (model !== undefined) models.push(model);
	}
	const routes: RouteSpec[] = [];
	// Routes are checked only if the models have no mistakes, which would cause misleading mistakes in routes.
	const isWhole = reader.problems().length === 0;
	for (const field of (isWhole && reader.list(file?.get("routes"), ROUTES_MAX)) || []) {
		const route = readRoute(reader, field, models, claimAt(field));
		if (route !== undefined) routes.push(route);
	}
	readBrand(reader, file?.get("brand"));
	const limits = readLimits(reader, file?.get("limits"));
	const cors = readCors(reader, file?.get("cors"));
	const problems = reader.problems();
	if (problems.length > 0) throw new CatalogFileError(problems);
	return Object.freeze({
		models: Object.freeze(models),
		routes: Object.freeze(routes),
		limits,
		cors,
		warnings: reader.warnings(),
	});
}

/** The number of problems ("2 problems"), then a line for each problem. */
export function describeProblems(problems: readonly YamlProblem[]): string {
	const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
	return `the catalogue has ${count}:\n${problemLines(problems).join("\n")}`;
}

function problemLines(problems: readonly YamlProblem[]): string[] {
	return problems.map(({ line, message }) => (line === 0 ? `  ${message}` : `  line ${line}: ${message}`));
}

/** Claims a name. Ids, aliases and routes must differ, because a request's `model` may be any of them. */
function claim(reader: YamlReader, names: Map<string, number>, name: string, at: { line: number; path: string }): void {
	const taken = names.get(name);
	if (taken === undefined) names.set(name, at.line);
	else reader.report(at, `the name ${quoteValue(name)} is already used in line ${taken}`);
}

export type CatalogCheck =
	| {
			readonly ok: true;
			readonly models: readonly ReturnType<typeof summariseModel>[];
			readonly routes: readonly RouteSpec[];
			readonly limits: ServiceLimits;
			readonly warnings: readonly YamlProblem[];
	  }
	| { readonly ok: false; readonly problems: readonly YamlProblem[] };

/** Parses the file as a gateway would, but without a database. */
export function checkCatalog(text: string, env: Environment): CatalogCheck {
	try {
		const { models, routes, limits, warnings } = parseCatalogFile(text, env);
		return { ok: true, models: models.map(summariseModel), routes, limits, warnings };
	} catch (error) {
		if (error instanceof CatalogFileError) return { ok: false, problems: error.problems };
		throw error;
	}
}

/** The result of the check as text for a terminal, without a final line end. */
export function formatCatalogCheck(check: CatalogCheck): string {
	if (!check.ok) return describeProblems(check.problems);
	const models = check.models.map(({ id, kind, replicas, rates, batch_rates, retires_on }) => {
		const end = retires_on === undefined ? "" : `; retires on ${retires_on}`;
		const lines = batch_rates === undefined ? "" : `; in batches: ${pricesOf(batch_rates)}`;
		return `  ${id} (${kind}, ${replicas} ${replicas === 1 ? "replica" : "replicas"}): ${pricesOf(rates)}${lines}${end}`;
	});
	const count = check.models.length === 1 ? "1 model" : `${check.models.length} models`;
	const unit = models.length === 0 ? "" : `; ${WRITTEN_UNITS}`;
	const routes = check.routes.map(({ id, modelIds, by }) => {
		const order = by === "listed" ? "as listed" : `by ${by}`;
		return `  ${id} (route, ${order}): ${modelIds.join(", ")}`;
	});
	const warnings = check.warnings.length === 0 ? [] : ["warnings:", ...problemLines(check.warnings)];
	return [`${count}${unit}`, ...models, ...routes, ...warnings].join("\n");
}

function pricesOf(rates: Partial<WrittenRates>): string {
	const prices = Object.entries(rates).map(([unit, rate]) => `${unit} ${rate}`);
	return prices.length === 0 ? "free" : prices.join(", ");
}

/** A model for `catalog check` and `catalog show`: rates in the units of `tollgate.yaml`, without zero rates. */
function summariseModel(model: ModelSpec) {
	const { id, name, kind, upstreams, contextLength, maxOutputTokens, rates, batch, retiresOn } = model;
	return {
		id,
		name,
		kind,
		replicas: upstreams.length,
		context_length: contextLength,
		max_output_tokens: maxOutputTokens,
		rates: nonZeroRates(rates),
		...(batch === undefined ? {} : { batch_rates: nonZeroRates(batch.rates ?? rates) }),
		...(retiresOn === undefined ? {} : { retires_on: retiresOn }),
	};
}
