import { Button, Group, NumberInput, Progress, SimpleGrid, Stack } from "@mantine/core";
import { useState } from "react";
import { NO_QUANTITIES, priceWithin } from "../../admission/price.ts";
import { MAX_NANO_USD, type NanoUsd } from "../../money/nano-usd.ts";
import { formatCount, SEPARATORS } from "../format.ts";
import { Link } from "../router.tsx";
import { showUsd } from "../shown-money.ts";
import { t } from "../texts.tsx";
import type { ModelView } from "../views.ts";
import { Empty } from "./problem.tsx";
import { Amount } from "./text.tsx";

/** A typical request. The tokens of `cached` are included in `input`. */
export interface Workload {
	readonly input: number;
	readonly cached: number;
	readonly output: number;
	readonly requests: number;
}

const WORKLOADS: readonly (Workload & { readonly label: string })[] = [
	{ label: t("Chat"), input: 800, cached: 0, output: 300, requests: 100_000 },
	{ label: t("Question about documents (RAG)"), input: 6_000, cached: 0, output: 400, requests: 50_000 },
	{ label: t("Agent step"), input: 30_000, cached: 24_000, output: 500, requests: 20_000 },
];
const TOKENS_MAX = 10_000_000;
const SHOWN_MAX = 12;
const REQUESTS_MAX = 1_000_000_000;

const FIELDS: readonly { readonly name: keyof Workload; readonly label: string; readonly max: number }[] = [
	{ name: "input", label: t("Input tokens"), max: TOKENS_MAX },
	{ name: "cached", label: t("Of which cached"), max: TOKENS_MAX },
	{ name: "output", label: t("Output tokens"), max: TOKENS_MAX },
	{ name: "requests", label: t("Requests per month"), max: REQUESTS_MAX },
];

/** Compares the cost of the same requests on each model, cheapest first, computed as charges are. */
export function PriceCalculator({ models }: { models: readonly ModelView[] }) {
	const [work, setWork] = useState<Workload>(WORKLOADS[0] as Workload);
	const priced = models
		.filter((model) => model.modes.includes("chat"))
		.map((model) => ({ model, each: requestCost(model, work) }))
		.sort((one, other) => one.each - other.each);
	const dearest = Math.max(1, ...priced.slice(0, SHOWN_MAX).map(({ each }) => each));
	if (priced.length === 0) return <Empty title={t("No chat model is deployed.")} />;
	return (
		<SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
			<Stack gap="sm">
				<Group gap="xs">
					{WORKLOADS.map(({ label, ...preset }) => (
						<Button
							key={label}
							size="xs"
							variant={FIELDS.every(({ name }) => preset[name] === work[name]) ? "filled" : "default"}
							aria-pressed={FIELDS.every(({ name }) => preset[name] === work[name])}
							onClick={() => setWork(preset)}
						>
							{label}
						</Button>
					))}
				</Group>
				<SimpleGrid cols={2} spacing="sm" className="field-row">
					{FIELDS.map(({ name, label, max }) => (
						<NumberInput
							key={name}
							label={label}
							min={0}
							max={max}
							clampBehavior="strict"
							allowDecimal={false}
							allowNegative={false}
							{...SEPARATORS}
							value={work[name]}
							onValueChange={({ floatValue }) => setWork({ ...work, [name]: floatValue ?? 0 })}
						/>
					))}
				</SimpleGrid>
			</Stack>
			<Stack component="ol" className="bare" gap="sm" aria-label={t("Cost by model, the cheapest first")}>
				{priced.slice(0, SHOWN_MAX).map(({ model, each }) => (
					<li key={model.id}>
						<Group justify="space-between" gap="xs">
							<Link to={`/models/${model.id}`}>{model.name}</Link>
							<span>
								{model.speed !== null && model.speed.tokensPerSecond !== null && (
									<span className="dim num">
										{t("{count} tokens/s", { count: formatCount(model.speed.tokensPerSecond) })}
										{" · "}
									</span>
								)}
								<Amount nanoUsd={each} /> <span className="dim">{t("per request")}</span>
								{" · "}
								<strong className="num">{monthly(each, work.requests)}</strong>{" "}
								<span className="dim">{t("per month")}</span>
							</span>
						</Group>
						<Progress value={Math.max(1, (100 * each) / dearest)} mt={4} aria-hidden="true" />
					</li>
				))}
				{priced.length > SHOWN_MAX && (
					<li className="small dim">
						{t("{count} more expensive models are not shown.", { count: priced.length - SHOWN_MAX })}
					</li>
				)}
			</Stack>
		</SimpleGrid>
	);
}

/** Cost of a request, rounded up once, as charges are. */
export function requestCost({ rates }: Pick<ModelView, "rates">, work: Workload): NanoUsd {
	const cached = Math.min(work.cached, work.input);
	return priceWithin(rates, {
		...NO_QUANTITIES,
		promptTokens: work.input,
		cachedTokens: cached,
		completionTokens: work.output,
		requests: 1,
	});
}

function monthly(each: NanoUsd, requests: number): string {
	const sum = BigInt(each) * BigInt(requests);
	if (sum > BigInt(MAX_NANO_USD)) return t("more than {amount}", { amount: showUsd(MAX_NANO_USD) });
	return showUsd(Number(sum) as NanoUsd);
}
