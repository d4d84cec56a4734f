import { Group, SimpleGrid, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { STOP_REASONS } from "../../billing/stop-reasons.ts";
import { formatUsd, type NanoUsd } from "../../money/nano-usd.ts";
import { type AutoTopUpView, api } from "../api.ts";
import { brand } from "../brand.ts";
import { UsdField } from "../parts/fields.tsx";
import { ActButton, fieldError, PanelForm } from "../parts/form.tsx";
import { capitalize, ErrorMessage, LoadState, Notice, Panel, State } from "../parts/page.tsx";
import { DataTable } from "../parts/table.tsx";
import { Timestamp } from "../parts/text.tsx";
import { type Resource, useAction, useNow } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { showUsd, t } from "../texts.tsx";

/** Duration and interval of polling for a card that the customer has saved on Stripe's page. */
const AWAIT_MS = 60_000;
const POLL_CARD_MS = 2_000;
const POLL_MS = 4_000;
const STATES = {
	on: { label: t("On"), tone: "ok" },
	stopped: { label: t("Stopped"), tone: "bad" },
	needs_owner: { label: t("Action required"), tone: "warn" },
} as const;

export function AutomaticPanel({ view }: { view: Resource<AutoTopUpView> }) {
	const may = useMay();
	const { data } = view;
	const state = data?.autoTopUp?.state;
	return (
		<Panel title={t("Automatic top-ups")} aside={state && <State value={state} {...STATES[state]} />}>
			<LoadState of={view} height={90} />
			{data && (
				<Stack gap={14}>
					<Trouble view={data} onChanged={() => void view.reload()} />
					<Card view={data} reload={view.reload} />
					{data.card !== null && may("card.charge") && (
						<Settings key={data.autoTopUp?.changedAtMs ?? "off"} view={data} onChanged={() => void view.reload()} />
					)}
					{data.card !== null && !may("card.charge") && (
						<p className="small dim">{t("Only owners, admins and billing members can change this.")}</p>
					)}
					{data.attempts.length > 0 && <Attempts view={data} />}
				</Stack>
			)}
		</Panel>
	);
}

/** Polls while an owner must act. A declined card changes no credit, so the live feed reports nothing. */
export const automaticPollMs = (data: AutoTopUpView | undefined) => data?.autoTopUp?.state === "on" && POLL_MS;

/** Says why automatic top-ups stopped, and how to resume them. */
function Trouble({ view: { autoTopUp }, onChanged }: { view: AutoTopUpView; onChanged: () => void }) {
	const account = useAccount();
	const may = useMay();
	const finish = useAction(async () => {
		location.assign((await api.finishAutoTopUp(account.id)).url);
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
						? t("Nothing was charged. Automatic top-ups are paused until you confirm the payment.")
						: t("Save the settings again to resume automatic top-ups.")}
				</span>
				{autoTopUp.state === "needs_owner" && may("credit.buy") && (
					<ActButton label={t("Confirm the payment")} look="main" action={finish} />
				)}
			</Group>
			{finish.error && <ErrorMessage error={finish.error} />}
		</Notice>
	);
}

function Card({ view: { card }, reload }: { view: AutoTopUpView; reload: () => Promise<void> }) {
	const account = useAccount();
	const may = useMay();
	const isAwaited = useAwaitedCard(card?.savedAtMs ?? 0, reload);
	const give = useAction(async () => {
		location.assign((await api.saveCard(account.id)).url);
	});
	const remove = useAction(() => api.removeCard(account.id), reload);
	const error = give.error ?? remove.error;
	return (
		<>
			{card === null ? (
				<p>{t("Save a card to top up automatically when the balance falls below an amount that you set.")}</p>
			) : (
				<p>
					{t("Card: {brand} ending in {lastFour}, expires {expiry}", {
						brand: capitalize(card.brand),
						lastFour: card.lastFour,
						expiry: `${String(card.expMonth).padStart(2, "0")}/${card.expYear}`,
					})}
				</p>
			)}
			{isAwaited && <Notice>{t("Waiting for Stripe to confirm the card. This page updates automatically.")}</Notice>}
			{error && <ErrorMessage error={error} />}
			{may("card.charge") && (
				<Group justify="flex-end" gap="xs">
					{card !== null && <ActButton size="sm" label={t("Remove the card")} action={remove} />}
					<ActButton
						size="sm"
						label={card === null ? t("Save a card") : t("Replace the card")}
						look={card === null ? "main" : "plain"}
						action={give}
					/>
				</Group>
			)}
		</>
	);
}

/** Polls after the return from Stripe's page, at most a minute. True while the saved card has not arrived here. */
function useAwaitedCard(savedAtMs: number, reload: () => Promise<void>): boolean {
	const [query, change] = useQueryState();
	const [before] = useState(savedAtMs);
	const [untilMs] = useState(() => (query.get("card") === "saved" ? Date.now() + AWAIT_MS : 0));
	const now = useNow(POLL_CARD_MS);
	const isAwaited = savedAtMs === before && now < untilMs;
	useEffect(() => {
		if (isAwaited && now > 0) void reload();
	}, [isAwaited, now, reload]);
	useEffect(() => {
		if (untilMs > 0) change({ card: null });
	}, [untilMs, change]);
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
	const save = useAction(() => api.saveAutoTopUp(account.id, given), onChanged);
	const off = useAction(() => api.switchOffAutoTopUp(account.id), onChanged);
	const field = (name: Field, label: string) => (
		<UsdField
			label={label}
			value={given[name]}
			error={fieldError(save, name)}
			onChange={(value) => setGiven({ ...given, [name]: value })}
		/>
	);
	return (
		<PanelForm
			action={save}
			act={autoTopUp?.state === "on" ? t("Save") : t("Switch on")}
			main
			disabled={FIELDS.some((name) => given[name] === "")}
			error={save.error ?? off.error}
			fields={FIELDS}
			more={autoTopUp !== null && <ActButton size="sm" label={t("Switch off")} action={off} />}
		>
			<SimpleGrid minColWidth="min(100%, 220px)" autoFlow="auto-fit" className="field-row">
				{field("belowUsd", t("When the balance falls below (USD)"))}
				{field("amountUsd", t("Top-up amount (USD)"))}
				{field("monthMostUsd", t("Monthly limit (USD)"))}
			</SimpleGrid>
			{autoTopUp !== null && (
				<p className="small dim">
					{t("Automatic top-ups this month: {bought} of {most}", {
						bought: showUsd(boughtNanoUsd),
						most: showUsd(autoTopUp.monthMostNanoUsd),
					})}
				</p>
			)}
			<p className="small dim">
				{t(
					"By switching this on, you authorize {service} to charge this card each time the balance falls below the threshold, until you switch it off. If the balance is below it now, the card is charged immediately. Credit is added when the payment clears.",
					{ service: brand.name },
				)}
			</p>
		</PanelForm>
	);
}

const shown = (amount: NanoUsd | undefined, proposed: string) => (amount === undefined ? proposed : formatUsd(amount));

const ATTEMPTS = {
	running: { label: t("Processing"), tone: "warn" },
	needs_authentication: { label: t("Action required"), tone: "warn" },
	succeeded: { label: t("Paid"), tone: "ok" },
	declined: { label: t("Declined"), tone: "bad" },
	ended: { label: t("Not charged"), tone: "off" },
} as const;

function Attempts({ view }: { view: AutoTopUpView }) {
	return (
		<DataTable
			label={t("Automatic top-ups")}
			rows={view.attempts}
			columns={[
				{ label: t("Created"), lead: true, render: ({ begunAtMs }) => <Timestamp atMs={begunAtMs} /> },
				{
					label: t("State"),
					render: ({ state, reason }) => (
						<>
							<State value={state} {...ATTEMPTS[state]} />
							{reason !== null && <div className="small dim">{t(STOP_REASONS[reason])}</div>}
						</>
					),
				},
				{ label: t("Amount"), amount: ({ amountNanoUsd }) => amountNanoUsd, corner: true },
			]}
		/>
	);
}
