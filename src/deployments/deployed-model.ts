import type { ChatMode, Model, ModelKind, RateCard } from "../catalog/model.ts";

/** A model as a gateway serves it, as JSON for the console. Without addresses and keys of its servers. */
export interface DeployedModel {
	readonly id: string;
	readonly aliases: readonly string[];
	readonly name: string;
	readonly kind: ModelKind;
	readonly modes: readonly ChatMode[];
	readonly inputModalities: readonly string[];
	readonly outputModalities: readonly string[];
	readonly contextLength: number;
	readonly maxOutputTokens: number;
	readonly parameters: readonly string[];
	readonly rateCard: RateCard;
	/** `2027-01-31`, in UTC; absent if none is set, or from a gateway of the former version. */
	readonly retiresOn?: string;
}

export function deployedModel(model: Model): DeployedModel {
	const { id, aliases, name, kind, contextLength, maxOutputTokens, rateCard, retiresOn } = model;
	return {
		id,
		aliases,
		name,
		kind,
		modes: [...model.modes],
		inputModalities: [...model.inputModalities],
		outputModalities: [...model.outputModalities],
		contextLength,
		maxOutputTokens,
		parameters: [...model.parameters],
		rateCard,
		...(retiresOn === undefined ? {} : { retiresOn }),
	};
}
