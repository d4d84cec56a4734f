import type { Environment } from "../base/environment-reader.ts";
import { CatalogFileError, describeProblems, parseCatalogFile, problemLines } from "./file.ts";
import type { ModelSpec, RouteSpec } from "./model.ts";
import type { ServiceLimits } from "./service-limits.ts";
import { chargedRates, WRITTEN_UNITS, type WrittenRates } from "./written-rates.ts";
import type { Problem } from "./yaml-reader.ts";

export type CatalogCheck =
	| {
			readonly ok: true;
			readonly models: readonly ReturnType<typeof summariseModel>[];
			readonly routes: readonly RouteSpec[];
			readonly limits: ServiceLimits;
			readonly warnings: readonly Problem[];
	  }
	| { readonly ok: false; readonly problems: readonly Problem[] };

/** Parses the file as a server would, without a database. */
export function checkCatalog(text: string, env: Environment): CatalogCheck {
	try {
		const { models, routes, limits, warnings } = parseCatalogFile(text, env);
		return { ok: true, models: models.map(summariseModel), routes, limits, warnings };
	} catch (error) {
		if (error instanceof CatalogFileError) return { ok: false, problems: error.problems };
		throw error;
	}
}

/** Text for the terminal, without a final line end. */
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

/** A model as `catalog check` and `catalog show` print it. Rates are in the file's units; rates of 0 are left out. */
function summariseModel(model: ModelSpec) {
	const { id, name, kind, upstreams, contextLength, maxOutputTokens, rates, batch, retiresOn } = model;
	return {
		id,
		name,
		kind,
		replicas: upstreams.length,
		context_length: contextLength,
		max_output_tokens: maxOutputTokens,
		rates: chargedRates(rates),
		...(batch === undefined ? {} : { batch_rates: chargedRates(batch.rates ?? rates) }),
		...(retiresOn === undefined ? {} : { retires_on: retiresOn }),
	};
}
