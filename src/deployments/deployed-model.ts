import type { ChatMode, Model, ModelKind, OperatorCost, RateCard } from "../catalog/model.ts";

/** A model as a gateway reports it to the console: JSON, without its servers' addresses and keys. */
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
	/** For operators only. */
	readonly cost?: OperatorCost;
	/** First day (UTC) without the model, `2027-01-31`. Absent: none is set, or the gateway has the previous version. */
	readonly retiresOn?: string;
	/** As in the catalogue. */
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
