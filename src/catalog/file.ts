import type { Environment } from "../base/environment-reader.ts";
import { readBrand } from "./brand-section.ts";
import { readLimits } from "./limits-section.ts";
import type { ModelSpec, RouteSpec } from "./model.ts";
import { readModel } from "./model-section.ts";
import { readRoute } from "./route-section.ts";
import type { ServiceLimits } from "./service-limits.ts";
import { createYamlReader, type Problem, type YamlReader } from "./yaml-reader.ts";
import { show, type YamlField } from "./yaml-scalars.ts";

export interface CatalogFile {
	readonly models: readonly ModelSpec[];
	readonly routes: readonly RouteSpec[];
	readonly limits: ServiceLimits;
	/** Warnings for the operator, by line. */
	readonly warnings: readonly Problem[];
}

/** A file that cannot be served. Carries every mistake, in the order of their lines. */
export class CatalogFileError extends Error {
	override readonly name = "CatalogFileError" as const;
	readonly problems: readonly Problem[];

	constructor(problems: readonly Problem[]) {
		super(describeProblems(problems));
		this.problems = problems;
	}
}

/** Characters; a larger file is refused before it is parsed. */
const FILE_LENGTH_MAX = 4 * 1024 * 1024;
const MODELS_MAX = 1000;
const ROUTES_MAX = 100;

/**
 * Reads the text of a `tollgate.yaml`. `${NAME}` in a value takes the variable from `env`. Top-level fields that begin
 * with `x-` are ignored; they may hold anchors. @throws CatalogFileError with all problems together.
 */
export function parseCatalogFile(text: string, env: Environment): CatalogFile {
	if (text.length > FILE_LENGTH_MAX) {
		throw new CatalogFileError([{ line: 0, message: `the file is longer than ${FILE_LENGTH_MAX} characters` }]);
	}
	const reader = createYamlReader(text, env);
	const file = reader.map(reader.root, ["models", "routes", "limits", "brand"], (name) => name.startsWith("x-"));
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
	// Routes are checked only if the models have no mistakes: errors of routes would repeat those of models.
	const isWhole = reader.problems().length === 0;
	for (const field of (isWhole && reader.list(file?.get("routes"), ROUTES_MAX)) || []) {
		const route = readRoute(reader, field, models, claimAt(field));
		if (route !== undefined) routes.push(route);
	}
	readBrand(reader, file?.get("brand"));
	const limits = readLimits(reader, file?.get("limits"));
	const problems = reader.problems();
	if (problems.length > 0) throw new CatalogFileError(problems);
	return Object.freeze({
		models: Object.freeze(models),
		routes: Object.freeze(routes),
		limits,
		warnings: reader.warnings(),
	});
}

/** A count ("2 problems") and a line for each problem. */
export function describeProblems(problems: readonly Problem[]): string {
	const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
	return `the catalogue has ${count}:\n${problemLines(problems).join("\n")}`;
}

export function problemLines(problems: readonly Problem[]): string[] {
	return problems.map(({ line, message }) => (line === 0 ? `  ${message}` : `  line ${line}: ${message}`));
}

/** Ids, aliases and routes share one name space. */
function claim(reader: YamlReader, names: Map<string, number>, name: string, at: { line: number; path: string }): void {
	const taken = names.get(name);
	if (taken === undefined) names.set(name, at.line);
	else reader.report(at, `the name ${show(name)} is already used in line ${taken}`);
}
