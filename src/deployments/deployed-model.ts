import type { ChatMode, Model, ModelKind, OperatorCost, RateCard } from "../catalog/model.ts";

/** A model as a gateway reports it to the console: JSON, without addresses and keys of its servers. */
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
	/** Shown to operators only. */
	readonly cost?: OperatorCost;
	/** First day (UTC) without the model, `2027-01-31`. Undefined: none is set, or the gateway has an older version. */
	readonly retiresOn?: string;
	/** Ids and tags of the accounts that can see the model, as in the catalogue. */
	readonly visibleTo?: readonly string[];
}

export function deployedModel(model: Model): DeployedModel {
	const { id, aliases, name, kind, contextLength, maxOutputTokens, rateCard, cost, retiresOn, visibleTo } = model;
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
		...(cost === undefined ? {} : { cost }),
		...(retiresOn === undefined ? {} : { retiresOn }),
		...(visibleTo === undefined ? {} : { visibleTo }),
	};
}
