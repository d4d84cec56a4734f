import { Fault } from "../../base/fault.ts";
import { findModel } from "../../catalog/find-model.ts";
import type { CatalogSnapshot, Model, RateCard } from "../../catalog/model.ts";
import { formatRatePerUnit } from "../../money/nano-usd.ts";
import { modelNotFound } from "../serve/model-for.ts";

/** A catalogue entry as GET /v1/models gives it: OpenAI's four fields, then what aggregators add. */
export interface ModelEntry {
	readonly id: string;
	readonly object: "model";
	readonly created: number;
	readonly owned_by: string;
	readonly name: string;
	readonly kind: string;
	readonly context_length: number;
	readonly max_output_tokens: number;
	readonly supported_parameters: readonly string[];
	readonly modes: readonly string[];
	readonly architecture: {
		readonly modality: string;
		readonly input_modalities: readonly string[];
		readonly output_modalities: readonly string[];
	};
	/** Decimal strings, US dollars per single unit. */
	readonly pricing: Readonly<Record<string, string>>;
	/** Of lines of managed batches; absent where the model takes none. */
	readonly batch_pricing?: Readonly<Record<string, string>>;
	readonly rate_card: string;
	/** Whether a server for it is connected right now. */
	readonly status: "connected" | "unavailable";
}

/** GET /v1/models: what is deployed and listed, connected or not. */
export function listModels(
	snapshot: CatalogSnapshot,
	connected: (modelId: string) => boolean,
): { object: "list"; data: ModelEntry[] } {
	return { object: "list", data: [...snapshot.models.values()].map((model) => modelEntry(model, connected(model.id))) };
}

/** GET /v1/models/{id}; the id may hold slashes, raw or percent-encoded. Fault model_not_found. */
export function findModelEntry(
	snapshot: CatalogSnapshot,
	encodedId: string,
	connected: (modelId: string) => boolean,
): ModelEntry {
	const id = decoded(encodedId);
	const model = findModel(snapshot, id);
	if (!model) throw modelNotFound(id);
	return modelEntry(model, connected(model.id));
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch (cause) {
		throw new Fault("not_found", "The model's ID is not a valid part of an address.", { cause });
	}
}

function modelEntry(model: Model, connected: boolean): ModelEntry {
	const input = [...model.inputModalities];
	const output = [...model.outputModalities];
	return {
		id: model.id,
		object: "model",
		created: model.createdS,
		owned_by: model.id.includes("/") ? (model.id.split("/")[0] as string) : "tollgate",
		name: model.name,
		kind: model.kind,
		context_length: model.contextLength,
		max_output_tokens: model.maxOutputTokens,
		supported_parameters: [...model.parameters],
		modes: model.batch === undefined ? [...model.modes] : [...model.modes, "batch"],
		architecture: {
			modality: `${input.join("+")}->${output.join("+")}`,
			input_modalities: input,
			output_modalities: output,
		},
		pricing: pricingOf(model.rateCard),
		...(model.batch === undefined ? {} : { batch_pricing: pricingOf(model.batch.rateCard ?? model.rateCard) }),
		rate_card: model.rateCard.id,
		status: connected ? "connected" : "unavailable",
	};
}

function pricingOf(rateCard: RateCard): Record<string, string> {
	return {
		prompt: formatRatePerUnit(rateCard.input),
		completion: formatRatePerUnit(rateCard.output),
		input_cache_read: formatRatePerUnit(rateCard.cachedInput),
		request: formatRatePerUnit(rateCard.request),
		image: formatRatePerUnit(rateCard.image),
		audio_second: formatRatePerUnit(rateCard.audioSecond),
		search: formatRatePerUnit(rateCard.search),
	};
}
