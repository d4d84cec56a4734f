/**
 * The current catalogue. A snapshot is immutable and replaced as a whole, so that code which holds one has a consistent
 * view. If a file has mistakes, or rates that cannot be stored, the previous snapshot stays (see `problems()`).
 */

import { assert } from "../base/assert.ts";
import { type Clock, withDeadline } from "../base/clock.ts";
import type { Environment } from "../base/environment-reader.ts";
import type { Log } from "../base/log.ts";
import type { Statements } from "../db/statements.ts";
import { type Cors, DEFAULT_CORS } from "./cors.ts";
import { type CatalogFile, CatalogFileError, parseCatalogFile } from "./file.ts";
import type { CatalogSnapshot, Model, ModelSpec, RateCard, Rates } from "./model.ts";
import { haveEqualRates, pinRateCards } from "./rate-cards.ts";
import { countRetired, servedModelsAt } from "./retirement.ts";
import { resolveRoutes } from "./routes.ts";
import { DEFAULT_LIMITS, type ServiceLimits } from "./service-limits.ts";
import type { YamlProblem } from "./yaml-reader.ts";

export type ReloadResult =
	| { readonly ok: true }
	/** `lasting`: loading succeeds only after the file is changed. Otherwise the same file may load later. */
	| { readonly ok: false; readonly problems: readonly YamlProblem[]; readonly lasting: boolean };

export type CatalogListener = (snapshot: CatalogSnapshot, limits: ServiceLimits) => void;

export type Catalog = ReturnType<typeof createCatalog>;
export type FixedCatalog = ReturnType<typeof createFixedCatalog>;

interface StoreDeps {
	statements: Statements;
	clock: Clock;
	log: Log;
}

export interface CatalogDeps extends StoreDeps {
	readFile: () => Promise<string>;
	/** Environment variables for `${NAME}` in the file. */
	env: Environment;
}

const PIN_DEADLINE_MS = 60_000;

export function createCatalog(deps: CatalogDeps) {
	const { log } = deps;
	const store = createStore(deps);
	let problems: readonly YamlProblem[] = [];
	/** Text of the last file that was loaded. Loading the same text again changes nothing. */
	let textInForce: string | undefined;
	/** Models of the last file that was loaded, and how many of them were retired then. */
	let inForce: { readonly models: readonly ModelSpec[]; readonly retired: number } = { models: [], retired: 0 };
	let running: Promise<ReloadResult> | undefined;
	let following: Promise<ReloadResult> | undefined;

	async function load(): Promise<ReloadResult> {
		let text: string;
		let file: CatalogFile;
		try {
			text = await deps.readFile();
		} catch (error) {
			return refuse([{ line: 0, message: `the file cannot be read: ${messageOf(error)}` }], false);
		}
		if (text === textInForce && !isStale()) return accept();
		try {
			file = parseCatalogFile(text, deps.env);
		} catch (error) {
			if (error instanceof CatalogFileError) return refuse(error.problems, true);
			throw error;
		}
		try {
			const nowMs = deps.clock.wallMs();
			await store.swap({ ...servedModelsAt(file, nowMs), limits: file.limits, cors: file.cors });
			inForce = { models: file.models, retired: countRetired(file.models, nowMs) };
		} catch (error) {
			log.debug("rate cards could not be stored", { error });
			return refuse([{ line: 0, message: "the rates cannot be stored: the database does not answer" }], false);
		}
		textInForce = text;
		if (file.warnings.length > 0) log.warn("the catalogue is in force, with warnings", { warnings: file.warnings });
		return accept();
	}

	function isStale(): boolean {
		return countRetired(inForce.models, deps.clock.wallMs()) !== inForce.retired;
	}

	function accept(): ReloadResult {
		problems = [];
		return { ok: true };
	}

	function refuse(found: readonly YamlProblem[], lasting: boolean): ReloadResult {
		const isNews = JSON.stringify(found) !== JSON.stringify(problems);
		problems = found;
		// A temporary failure is retried at each poll, but logged only once.
		if (isNews) log.error("the catalogue was not loaded; the previous one stays in force", { problems: found });
		return { ok: false, problems: found, lasting };
	}

	function start(): Promise<ReloadResult> {
		const mine = load()
			.catch((error) => {
				log.error("reloading the catalogue failed", { error });
				return refuse([{ line: 0, message: "an internal error; see the log" }], true);
			})
			.finally(() => {
				if (running === mine) running = undefined;
			});
		running = mine;
		return mine;
	}

	return {
		...store.reader,
		/** Why the newest version of the file was not loaded; empty if it was. */
		problems: () => problems,
		/** True if a model's retirement day has begun or was moved since the last load, so that a reload is needed. */
		isStale,
		/** Reads the file again. Calls during a reload share one further reload. Never rejects. */
		reload(): Promise<ReloadResult> {
			// Joins the reload that is already planned, because of two concurrent reloads the older text could win.
			if (following !== undefined) return following;
			if (running === undefined) return start();
			// The running reload may have read the file before its latest change, so a further reload follows.
			following = running.then(() => {
				following = undefined;
				return start();
			});
			return following;
		},
	};
}

/** A catalogue without a file: its models come from a discovery of servers or from the demo. */
export function createFixedCatalog(deps: StoreDeps, options: { limits?: ServiceLimits } = {}) {
	const store = createStore(deps);
	return {
		...store.reader,
		problems: () => [],
		isStale: () => false,
		reload: async () => ({ ok: true }) as const,
		/** Replaces all models. Rejects if their rates cannot be stored; the previous models then stay. */
		setModels: (specs: readonly ModelSpec[]) =>
			store.swap({
				...{ models: specs, routes: [], retired: new Map(), cors: DEFAULT_CORS },
				limits: options.limits ?? DEFAULT_LIMITS,
			}),
	};
}

type Swapped = Pick<CatalogFile, "models" | "routes" | "limits" | "cors"> & Pick<CatalogSnapshot, "retired">;

function createStore(deps: StoreDeps) {
	const { log } = deps;
	let snapshot: CatalogSnapshot = Object.freeze({
		revision: 0,
		models: new Map(),
		aliases: new Map(),
		routes: new Map(),
		retired: new Map(),
	});
	let limits: ServiceLimits = DEFAULT_LIMITS;
	let cors: Cors = DEFAULT_CORS;
	const listeners = new Set<CatalogListener>();
	let lastSwap: Promise<void> = Promise.resolve();
	/** Runs calls one after the other, so that the models of the last call stay. */
	function swap(file: Swapped): Promise<void> {
		const mine = lastSwap.then(() => swapNow(file));
		lastSwap = mine.catch(() => {
			// An error of the earlier call is handled by that call's caller.
		});
		return mine;
	}

	async function swapNow(file: Swapped): Promise<void> {
		assertDistinctNames(file.models);
		const priced = await price(deps, file.models, snapshot.models);
		const models = new Map(priced.map((model) => [model.id, model]));
		const before = snapshot;
		snapshot = Object.freeze({
			revision: before.revision + 1,
			models,
			routes: resolveRoutes(file.routes, models),
			aliases: new Map(priced.flatMap((model) => model.aliases.map((alias) => [alias, model.id] as const))),
			retired: file.retired,
		});
		limits = file.limits;
		cors = file.cors;
		log.info("the catalogue is in force", describeChange(before, snapshot));
		for (const listener of listeners) {
			try {
				listener(snapshot, limits);
			} catch (error) {
				log.error("a listener failed on the new catalogue", { error });
			}
		}
	}

	const reader = {
		/** The current snapshot. Before the first successful load it is empty and has revision 0. */
		current: () => snapshot,
		/** Limits from the file of the current snapshot. */
		limits: () => limits,
		/** Origins whose pages may call `/v1/`, from the file of the current snapshot. */
		cors: () => cors,
		/** Calls `listener` after each new snapshot, until the returned function is called. */
		onChange(listener: CatalogListener) {
			listeners.add(listener);
			return () => void listeners.delete(listener);
		},
	};
	return { reader, swap };
}

/** Name under which versions of a model's batch rates are stored; `#` is not allowed in model ids. */
const batchCardName = (modelId: string): string => `${modelId}#batch`;

function ratesToPin({ id, rates, batch }: ModelSpec): { id: string; rates: Rates }[] {
	const lines = batch?.rates ? [{ id: batchCardName(id), rates: batch.rates }] : [];
	return [{ id, rates }, ...lines];
}

function assertDistinctNames(specs: readonly ModelSpec[]): void {
	const names = specs.flatMap((spec) => [spec.id, ...spec.aliases]);
	assert(new Set(names).size === names.length, "every id and alias stands for one model");
}

function describeChange(before: CatalogSnapshot, after: CatalogSnapshot) {
	const ids = [...after.models.keys()];
	const card = (snapshot: CatalogSnapshot, id: string) => snapshot.models.get(id)?.rateCard.id;
	return {
		revision: after.revision,
		models: after.models.size,
		added: ids.filter((id) => !before.models.has(id)),
		removed: [...before.models.keys()].filter((id) => !after.models.has(id)),
		repriced: ids.filter((id) => before.models.has(id) && card(before, id) !== card(after, id)),
	};
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Finds or stores the rate cards of models. Known rates need no query, so servers can be changed during an outage. */
async function price(
	{ statements, clock }: StoreDeps,
	specs: readonly ModelSpec[],
	before: ReadonlyMap<string, Model>,
): Promise<Model[]> {
	const known = new Map<string, RateCard>();
	const wanted = specs.flatMap(ratesToPin);
	for (const { id, batch, rateCard } of before.values()) {
		known.set(id, rateCard);
		if (batch?.rateCard) known.set(batchCardName(id), batch.rateCard);
	}
	const unchanged = ({ id, rates }: { id: string; rates: Rates }) => {
		const card = known.get(id);
		return card !== undefined && haveEqualRates(card, rates) ? card : undefined;
	};
	const unknown = wanted.filter((each) => unchanged(each) === undefined);
	const pinning = unknown.length === 0 ? Promise.resolve(new Map()) : pinRateCards(statements, unknown);
	const pinned: Awaited<ReturnType<typeof pinRateCards>> = await withDeadline(
		clock,
		pinning,
		PIN_DEADLINE_MS,
		() => new Error("the database did not answer in time"),
	);
	const cardOf = (each: { id: string; rates: Rates }): { rateCard: RateCard; createdS: number | undefined } => {
		const same = unchanged(each);
		if (same !== undefined) return { rateCard: same, createdS: before.get(each.id)?.createdS };
		const card = pinned.get(each.id);
		assert(card !== undefined, "every model's rates were stored");
		const { createdS, ...rateCard } = card;
		return { rateCard: Object.freeze(rateCard), createdS };
	};
	return specs.map((spec) => {
		const { rates, batch, ...described } = spec;
		const { rateCard, createdS } = cardOf({ id: spec.id, rates });
		assert(createdS !== undefined, "a model is as old as its first rates");
		if (batch === undefined) return Object.freeze({ ...described, rateCard, createdS });
		const lines = batch.rates === null ? null : cardOf({ id: batchCardName(spec.id), rates: batch.rates }).rateCard;
		return Object.freeze({ ...described, rateCard, createdS, batch: Object.freeze({ rateCard: lines }) });
	});
}
