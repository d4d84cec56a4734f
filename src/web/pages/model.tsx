import { Button, SimpleGrid } from "@mantine/core";
import type { Rates } from "../../catalog/model.ts";
import type { PicoUsdPerUnit } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { formatCount, formatDay, formatDuration } from "../format.ts";
import { CodeTabs } from "../parts/code.tsx";
import { KINDS, ModelState } from "../parts/model-table.tsx";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Empty, Notice, Reading } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Id, Moment } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useSession } from "../session.tsx";
import { showRatePerMillion, showRatePerUnit } from "../shown-money.ts";
import { chatSnippets } from "../snippets/chat.ts";
import { rich, t } from "../texts.tsx";
import type { ModelDetail } from "../views.ts";

const RATES: readonly { name: keyof Rates; label: string; show: (rate: PicoUsdPerUnit) => string }[] = [
	{ name: "input", label: t("Input, per million tokens"), show: showRatePerMillion },
	{ name: "cachedInput", label: t("Cached input, per million tokens"), show: showRatePerMillion },
	{ name: "output", label: t("Output, per million tokens"), show: showRatePerMillion },
	{ name: "request", label: t("Request"), show: showRatePerUnit },
	{ name: "image", label: t("Image"), show: showRatePerUnit },
	{ name: "audioSecond", label: t("Second of audio"), show: showRatePerUnit },
	{ name: "search", label: t("Search"), show: showRatePerUnit },
];

export default function ModelPage({ id }: { id: string }) {
	const model = useResource(`model ${id}`, () => api.model(id));
	const { me } = useSession();
	const item = model.data;
	if (model.error?.status === 404) {
		return (
			<Page title={t("Model")}>
				<Empty title={t("There is no such model.")} action={<Link to="/models">{t("All models")}</Link>} />
			</Page>
		);
	}
	return (
		<Page
			title={item?.name ?? id}
			lead={<Id value={id} label={t("Copy the model's id")} />}
			aside={
				me?.account &&
				item?.modes.includes("chat") && (
					<Button component={Link} to={`/playground?model=${encodeURIComponent(id)}`} size="xs">
						{t("Try it")}
					</Button>
				)
			}
		>
			<Reading of={model} height={320} />
			{item && <Detail item={item} />}
		</Page>
	);
}

function Detail({ item }: { item: ModelDetail }) {
	const { config } = useSession();
	const used = RATES.filter(({ name }) => [item, ...item.history].some(({ rates }) => rates[name] > 0));
	return (
		<>
			{item.status === "unavailable" && (
				<Notice kind="warn">
					{rich(
						"No server for this model is connected right now: requests are refused with 503. The <link>status page</link> says the same.",
						{ link: (inner) => <a href="/status">{inner}</a> },
					)}
				</Notice>
			)}
			{item.retiresOn && (
				<Notice kind="warn">
					{rich(
						"This model goes away: from {retiresOn} (UTC) on, requests that name it are refused with 404. <link>All models</link>",
						{ retiresOn: formatDay(Date.parse(item.retiresOn)), link: (inner) => <Link to="/models">{inner}</Link> },
					)}
				</Notice>
			)}
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("Model")}>
					<Facts
						of={{
							[t("State")]: <ModelState model={item} />,
							[t("Replicas")]: t("{up} of {total} up", {
								up: formatCount(item.replicas.up),
								total: formatCount(item.replicas.total),
							}),
							[t("Kind")]: KINDS[item.kind] ?? item.kind,
							[t("Modes")]: item.modes.join(", ") || "–",
							[t("Context")]: tokensText(item.contextLength),
							[t("Output at most")]: tokensText(item.maxOutputTokens),
							[t("Takes")]: item.inputModalities.join(", "),
							[t("Gives")]: item.outputModalities.join(", "),
							[t("Optional fields")]: item.parameters.join(", ") || t("None"),
						}}
					/>
				</Panel>
				<SpeedPanel speed={item.speed} />
				<Panel title={t("Rates in USD")}>
					<Facts
						of={Object.fromEntries(
							used.map(({ name, label, show }) => [
								label,
								<span key={name} className="num">
									{show(item.rates[name])}
								</span>,
							]),
						)}
					/>
				</Panel>
			</SimpleGrid>
			{item.modes.includes("chat") && (
				<Panel title={t("Use it")}>
					<CodeTabs
						snippets={chatSnippets({
							baseUrl: config.baseUrl,
							model: item.id,
							messages: [{ role: "user", content: t("Hello!") }],
						})}
					/>
				</Panel>
			)}
			<Panel title={t("Rate history")} flush>
				<DataTable
					label={t("Rate history")}
					rows={item.history}
					rowKey={(entry) => entry.id}
					empty={<Empty title={t("No history yet.")} />}
					columns={[
						{
							label: t("Version"),
							lead: true,
							render: (entry) => <span className="num">{t("Version {version}", { version: entry.version })}</span>,
						},
						{ label: t("Since"), render: (entry) => <Moment atMs={entry.storedAtMs} /> },
						...used.map(({ name, label, show }) => ({
							label,
							right: true,
							render: (entry: ModelDetail["history"][number]) => <span className="num">{show(entry.rates[name])}</span>,
						})),
					]}
				/>
			</Panel>
		</>
	);
}

const tokensText = (count: number) => (count > 0 ? t("{count} tokens", { count: formatCount(count) }) : "–");

/** Measured speed, with the method of measurement. */
function SpeedPanel({ speed }: { speed: ModelDetail["speed"] }) {
	if (speed === null)
		return (
			<Panel title={t("Speed")}>
				<Empty title={t("Too few streamed answers in the last day to tell.")} />
			</Panel>
		);
	return (
		<Panel title={t("Speed")}>
			<Facts
				of={{
					[t("First token, median")]: formatDuration(speed.firstTokenMs),
					[t("Tokens a second, median")]:
						speed.tokensPerSecond === null ? t("Too few long answers") : formatCount(speed.tokensPerSecond),
				}}
			/>
			<p className="small dim">
				{t(
					"Of {requests} streamed answers of the last day, of all customers, measured by this service: from a request's arrival to its first token, and behind that as the tokens came, for answers of 16 and more. Within 6 %.",
					{ requests: formatCount(speed.requests) },
				)}
			</p>
		</Panel>
	);
}
