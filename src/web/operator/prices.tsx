import { Select } from "@mantine/core";
import { useState } from "react";
import type { Agreement, PriceTerms } from "../../catalog/agreements.ts";
import { formatDecimal } from "../../money/decimal.ts";
import { formatRatePerMillion, formatRatePerUnit } from "../../money/nano-usd.ts";
import type { Fence } from "../api.ts";
import { TextField } from "../parts/fields.tsx";
import { RATES } from "../parts/model-table.tsx";
import { Timestamp } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { rich, showRatePerMillion, t } from "../texts.tsx";
import { useAttempt } from "../token.ts";
import { operatorApi } from "./api.ts";
import { reasonField } from "./decision.tsx";

/** Describes agreed terms: the model, and its discount, own rates or list price. */
export function termsText({ model, discount, rates }: Omit<PriceTerms, "fromMs">): string {
	const name = model ?? t("Every model");
	if (discount !== null) return t("{name}: {percent} % off", { name, percent: formatDecimal(discount, 2, 0) });
	if (rates === null) return t("{name}: list price", { name });
	const charged = RATES.filter(({ name }) => rates[name] > 0);
	const own = charged.map(({ name, label, show }) => `${label} ${show(rates[name])}`).join("; ");
	return `${name}: ${own || t("Free")}`;
}

/** Lists agreed prices that apply now or are planned. */
export function AgreedPrices({ of }: { of: readonly Agreement[] }) {
	if (of.length === 0) return t("List prices");
	return of.map((one) => (
		<div key={one.id}>
			{termsText(one)}
			{one.fromMs > 0 && <> ({rich("from {moment}", { moment: <Timestamp atMs={one.fromMs} /> })})</>}
		</div>
	));
}

const FRESH = { model: null as string | null, discount: "", rates: {} as Record<string, string>, from: "" };

/** Dialog for an account's prices: a discount, own rates, or the list price if neither is entered. */
export function usePrices(id: string, onDone: (fence: Fence) => void) {
	const [draft, setDraft] = useState(FRESH);
	const attempt = useAttempt();
	const models = useResource("operator-deployments", operatorApi.deployments);
	const list = models.data?.items.find(({ modelId }) => modelId === draft.model)?.rates;
	const charged = RATES.flatMap(({ name, label, show }) => {
		if (list === undefined || list[name] === 0) return [];
		const listed = (show === showRatePerMillion ? formatRatePerMillion : formatRatePerUnit)(list[name]);
		return [{ name: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), label, listed }];
	});
	const about = (
		<>
			<Select
				label={t("Model")}
				placeholder={t("Every model")}
				data={models.data?.items.map(({ modelId }) => modelId) ?? []}
				searchable
				clearable
				clearButtonProps={{ "aria-label": t("Every model") }}
				value={draft.model}
				onChange={(model) => setDraft({ ...draft, model, rates: {} })}
			/>
			<TextField
				label={t("Discount in percent")}
				description={t("Without a discount and own rates: the list price")}
				inputMode="decimal"
				pattern="[0-9]{1,3}(\.[0-9]{1,2})?"
				required={false}
				value={draft.discount}
				onChange={(discount) => setDraft({ ...draft, discount })}
			/>
			{charged.map(({ name, label, listed }) => (
				<TextField
					key={name}
					label={t("Own rate in USD: {label}", { label })}
					placeholder={listed}
					inputMode="decimal"
					required={false}
					value={draft.rates[name] ?? ""}
					onChange={(rate) => setDraft({ ...draft, rates: { ...draft.rates, [name]: rate } })}
				/>
			))}
			<TextField
				label={t("From")}
				description={t("Empty: at once. Later agreements for the same models end")}
				type="datetime-local"
				max="9999-12-31T23:59"
				required={false}
				value={draft.from}
				onChange={(from) => setDraft({ ...draft, from })}
			/>
		</>
	);
	async function run(reason: string): Promise<string | undefined> {
		const { model, discount, rates, from } = draft;
		const own = charged.map(({ name, listed }) => [name, rates[name] || listed]);
		const price = {
			...{ model, discount: discount || null, from: from === "" ? null : new Date(from).toISOString() },
			rates: charged.some(({ name }) => rates[name]) ? (Object.fromEntries(own) as Record<string, string>) : null,
		};
		const asked = { id, usd: "0", reason, price };
		const { secondLookNeeded, fence } = await attempt.send(asked, (token) => operatorApi.adjust(asked, token));
		if (fence !== null) onDone(fence);
		return secondLookNeeded
			? t("Recorded. Prices so far from the list need a second operator's confirmation on the Today page.")
			: undefined;
	}
	const decision = { title: t("Agree on prices"), about, act: t("Agree"), field: reasonField(), run };
	return { reset: () => setDraft(FRESH), decision };
}
