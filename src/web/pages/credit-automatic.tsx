import { Button, Group, NumberInput, SimpleGrid, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { STOP_REASONS } from "../../billing/stop-reasons.ts";
import { formatUsd, MAX_NANO_USD, type NanoUsd, parseUsd } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { brand } from "../brand.ts";
import { SEPARATORS } from "../format.ts";
import { Form, PanelEnd } from "../parts/form.tsx";
import { capital, Panel, State } from "../parts/page.tsx";
import { Notice, Problem, Reading } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Moment } from "../parts/text.tsx";
import { type Resource, useAction } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { useAccount, useMay, useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { t } from "../texts.tsx";
import type { AutoTopUpView } from "../views.ts";

/** Interval and number of the polls for a card that was just saved on Stripe's page. */
const LOOK_MS = 2_000;
const LOOKS_MAX = 30;
const NEWS_MS = 4_000;
const TONES = { on: "ok", stopped: "bad", needs_owner: "warn" } as const;

/** The saved card, the settings of automatic top-ups and the last attempts. */
export function AutomaticPanel({ view }: { view: Resource<AutoTopUpView> }) {
	const may = useMay();
	const { data } = view;
	useNews(data?.autoTopUp?.state === "on", view.reload);
	return (
		<Panel title={t("Automatic top-ups")} aside={data?.autoTopUp && <Standing view={data} />}>
			<Reading of={view} height={90} />
			{data && (
				<Stack gap={14}>
					<Trouble view={data} onChanged={() => void view.reload()} />
					<Card view={data} reload={view.reload} />
					{data.card !== null && may("card.charge") && (
						<Settings key={data.autoTopUp?.changedAtMs ?? "off"} view={data} onChanged={() => void view.reload()} />
					)}
					{data.card !== null && !may("card.charge") && (
						<p className="small dim">{t("Owners, admins and billing decide.")}</p>
					)}
					{data.attempts.length > 0 && <Attempts view={data} />}
				</Stack>
			)}
		</Panel>
	);
}

/** Polls while automatic top-ups are on: a declined card moves no credit, so the live feed does not report it. */
function useNews(isOn: boolean, reload: () => Promise<void>): void {
	useEffect(() => {
		if (!isOn) return;
		const timer = setInterval(() => {
			if (!document.hidden) void reload();
		}, NEWS_MS);
		return () => clearInterval(timer);
	}, [isOn, reload]);
}

function Standing({ view: { autoTopUp } }: { view: AutoTopUpView }) {
	if (autoTopUp === null) return null;
	const labels = { on: t("On"), stopped: t("Stopped"), needs_owner: t("Waits for you") };
	return <State value={autoTopUp.state} label={labels[autoTopUp.state]} tone={TONES[autoTopUp.state]} />;
}

/** Why automatic top-ups are stopped, and how to resume them. */
function Trouble({ view: { autoTopUp }, onChanged }: { view: AutoTopUpView; onChanged: () => void }) {
	const account = useAccount();
	const may = useMay();
	const finish = useAction(async () => {
		const { url } = await api.finishAutoTopUp(account.id);
		location.assign(url);
		onChanged();
	});
	if (autoTopUp === null || autoTopUp.state === "on") return null;
	const why = autoTopUp.reason === null ? "" : t(STOP_REASONS[autoTopUp.reason]);
	return (
		<Notice kind="warn">
			<Group justify="space-between" gap="xs">
				<span>
					{why}{" "}
					{autoTopUp.state === "needs_owner"
						? t("Nothing was charged. Until the payment is confirmed no further one is tried.")
						: t("Nothing is tried until the settings are saved again.")}
				</span>
				{autoTopUp.state === "needs_owner" && may("credit.buy") && (
					<Button size="xs" loading={finish.busy} onClick={() => void finish.run()}>
						{t("Confirm the payment")}
					</Button>
				)}
			</Group>
			{finish.error && <Problem error={finish.error} />}
		</Notice>
	);
}

function Card({ view: { card }, reload }: { view: AutoTopUpView; reload: () => Promise<void> }) {
	const account = useAccount();
	const may = useMay();
	const isAwaited = useAwaitedCard(card?.savedAtMs ?? 0, reload);
	const give = useAction(async () => {
		const { url } = await api.saveCard(account.id);
		location.assign(url);
	});
	const remove = useAction(async () => {
		await api.removeCard(account.id);
		await reload();
	});
	const error = give.error ?? remove.error;
	return (
		<>
			{card === null ? (
				<p>{t("With a saved card credit is bought by itself when it falls below an amount that you set.")}</p>
			) : (
				<p>
					{t("Card: {brand} ending in {lastFour}, good until {expiry}", {
						brand: capital(card.brand),
						lastFour: card.lastFour,
						expiry: `${String(card.expMonth).padStart(2, "0")}/${card.expYear}`,
					})}
				</p>
			)}
			{isAwaited && <Notice>{t("The card is being read from Stripe. It appears here by itself.")}</Notice>}
			{error && <Problem error={error} />}
			{may("card.charge") && (
				<Group justify="flex-end" gap="xs">
					{card !== null && (
						<Button variant="default" loading={remove.busy} onClick={() => void remove.run()}>
							{t("Remove the card")}
						</Button>
					)}
					<Button variant={card === null ? "filled" : "default"} loading={give.busy} onClick={() => void give.run()}>
						{card === null ? t("Save a card") : t("Use another card")}
					</Button>
				</Group>
			)}
		</>
	);
}

/** True while a card saved on Stripe's page is not stored here yet; polls for at most a minute. */
function useAwaitedCard(savedAtMs: number, reload: () => Promise<void>): boolean {
	const [query, change] = useQueryState();
	const isBack = query.get("card") === "saved";
	const [before] = useState(savedAtMs);
	const [looks, setLooks] = useState(0);
	const isAwaited = isBack && savedAtMs === before && looks < LOOKS_MAX;
	useEffect(() => {
		if (!isAwaited) return;
		const timer = setTimeout(() => {
			setLooks(looks + 1);
			void reload();
		}, LOOK_MS);
		return () => clearTimeout(timer);
	}, [isAwaited, looks, reload]);
	useEffect(() => {
		if (isBack && !isAwaited) change({ card: null });
	}, [isBack, isAwaited, change]);
	return isAwaited;
}

const FIELDS = ["belowUsd", "amountUsd", "monthMostUsd"] as const;
type Field = (typeof FIELDS)[number];

function Settings({ view: { autoTopUp, boughtNanoUsd }, onChanged }: { view: AutoTopUpView; onChanged: () => void }) {
	const account = useAccount();
	const [given, setGiven] = useState<Record<Field, string>>({
		belowUsd: shown(autoTopUp?.belowNanoUsd, "50"),
		amountUsd: shown(autoTopUp?.amountNanoUsd, "100"),
		monthMostUsd: shown(autoTopUp?.monthMostNanoUsd, "500"),
	});
	const [wrong, setWrong] = useState<Partial<Record<Field, string>>>();
	const { config } = useSession();
	const save = useAction(async () => {
		await api.saveAutoTopUp(account.id, given);
		onChanged();
	});
	const off = useAction(async () => {
		await api.switchOffAutoTopUp(account.id);
		onChanged();
	});
	const error = save.error ?? off.error;
	const isOfField = FIELDS.some((name) => name === error?.param);
	const field = (name: Field, label: string) => (
		<NumberInput
			label={label}
			hideControls
			decimalScale={2}
			{...SEPARATORS}
			allowNegative={false}
			value={given[name]}
			error={wrong?.[name] ?? (save.error?.param === name ? save.error.message : undefined)}
			onValueChange={({ value }) => {
				setWrong(undefined);
				setGiven({ ...given, [name]: value });
			}}
		/>
	);
	return (
		<Form
			onSubmit={() => {
				const wrong = wrongOf(given, config.topUpMinNanoUsd);
				setWrong(wrong);
				if (wrong === undefined) void save.run();
			}}
			error={isOfField ? undefined : error}
			end={
				<PanelEnd
					label={autoTopUp?.state === "on" ? t("Save") : t("Switch on")}
					busy={save.busy}
					disabled={FIELDS.some((name) => given[name] === "")}
					main
				>
					{autoTopUp !== null && (
						<Button variant="default" loading={off.busy} onClick={() => void off.run()}>
							{t("Switch off")}
						</Button>
					)}
				</PanelEnd>
			}
		>
			<SimpleGrid minColWidth="min(100%, 220px)" autoFlow="auto-fit" className="field-row">
				{field("belowUsd", t("When the balance is below, in USD"))}
				{field("amountUsd", t("Buy, in USD"))}
				{field("monthMostUsd", t("At most in a calendar month, in USD"))}
			</SimpleGrid>
			{autoTopUp !== null && (
				<p className="small dim">
					{t("Bought automatically this month: {bought} of {most}", {
						bought: showUsd(boughtNanoUsd),
						most: showUsd(autoTopUp.monthMostNanoUsd),
					})}
				</p>
			)}
			<p className="small dim">
				{t(
					"By switching this on you allow {service} to charge this card with these amounts, each time that the balance falls below the first of them, until you switch it off. If it is below now, the card is charged at once. Credit is there when the payment has cleared.",
					{ service: brand.name },
				)}
			</p>
		</Form>
	);
}

/** Checks the amounts as the service does, before they are sent. */
function wrongOf(given: Record<Field, string>, least: NanoUsd): Partial<Record<Field, string>> | undefined {
	const [below, amount, most] = FIELDS.map((name) => parseUsd(given[name]) ?? MAX_NANO_USD);
	if (below === undefined || amount === undefined || most === undefined) return undefined;
	if (amount < least) return { amountUsd: t("A top-up is at least {least}.", { least: showUsd(least) }) };
	if (amount < below) return { amountUsd: t("Buy at least as much as it is bought below.") };
	if (most < amount) return { monthMostUsd: t("The month's most covers one top-up at least.") };
	return undefined;
}

const shown = (amount: NanoUsd | undefined, proposed: string) => (amount === undefined ? proposed : formatUsd(amount));

function Attempts({ view }: { view: AutoTopUpView }) {
	const labels = {
		running: t("Being paid"),
		needs_authentication: t("Waits for you"),
		succeeded: t("Paid"),
		declined: t("Declined"),
		ended: t("Not charged"),
	};
	const tones = {
		running: "warn",
		needs_authentication: "warn",
		succeeded: "ok",
		declined: "bad",
		ended: "off",
	} as const;
	return (
		<DataTable
			label={t("Automatic top-ups")}
			rows={view.attempts}
			rowKey={({ id }) => id}
			empty={null}
			columns={[
				{ label: t("Made"), lead: true, render: ({ begunAtMs }) => <Moment atMs={begunAtMs} /> },
				{
					label: t("State"),
					render: ({ state, reason }) => (
						<>
							<State value={state} label={labels[state]} tone={tones[state]} />
							{reason !== null && <div className="small dim">{t(STOP_REASONS[reason])}</div>}
						</>
					),
				},
				{ label: t("Amount"), amount: ({ amountNanoUsd }) => amountNanoUsd, corner: true },
			]}
		/>
	);
}
