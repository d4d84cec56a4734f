import { Alert, Box, Button, Group, Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { type ReactNode, useId } from "react";
import { brand } from "../brand.ts";
import type { ApiError } from "../http.ts";
import { stateText } from "../labels.ts";
import type { Resource } from "../resource.ts";
import { Link } from "../router.tsx";
import { rich, t } from "../texts.tsx";
import { Icon } from "./icons.tsx";
import { CopyableId } from "./text.tsx";

export function Page(props: {
	title: string;
	aside?: ReactNode;
	lead?: ReactNode;
	children: ReactNode;
	narrow?: boolean;
}) {
	return (
		<div className={props.narrow ? "page page-narrow" : "page"}>
			<title>{`${props.title} · ${brand.name}`}</title>
			<Group component="header" justify="space-between" align="flex-start">
				<Box flex="1 1 240px" miw={0}>
					<h1>{props.title}</h1>
					{props.lead && <p className="dim">{props.lead}</p>}
				</Box>
				{props.aside && <Group gap="xs">{props.aside}</Group>}
			</Group>
			{props.children}
		</div>
	);
}

/** A panel. With `flush` a table reaches the panel's edges. */
export function Panel(props: { title?: ReactNode; aside?: ReactNode; children: ReactNode; flush?: boolean }) {
	const id = useId();
	return (
		<section className={props.flush ? "panel panel-flush" : "panel"} aria-labelledby={props.title ? id : undefined}>
			{(props.title || props.aside) && (
				<Group className="panel-head" justify="space-between" gap="xs">
					{props.title && <h2 id={id}>{props.title}</h2>}
					{props.aside && <Group gap="xs">{props.aside}</Group>}
				</Group>
			)}
			<div className="panel-body">{props.children}</div>
		</section>
	);
}

/** A figure; `note` and `children` appear below it. */
export function Stat(props: { label: string; value: ReactNode; note?: ReactNode; children?: ReactNode }) {
	const { label, value, note, children = note } = props;
	return (
		<div className="stat">
			<div className="small dim">{label}</div>
			<div className="stat-value num">{value}</div>
			{children && <div className="small dim">{children}</div>}
		</div>
	);
}

/** A list of names and values. Entries with null or false are omitted. */
export function DetailList({ of }: { of: Readonly<Record<string, ReactNode>> }) {
	const shown = Object.entries(of).filter(([, value]) => value !== null && value !== false);
	return (
		<dl className="facts">
			{shown.map(([name, value]) => (
				<div key={name}>
					<dt>{name}</dt>
					<dd>{value}</dd>
				</div>
			))}
		</dl>
	);
}

export const capitalize = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

type Tone = "ok" | "warn" | "bad" | "off";

/** Tone of each state; all other states are neutral. */
const STATES: Readonly<Record<Exclude<Tone, "off">, string>> = {
	ok: "ok active confirmed connected live up closed healthy exact",
	warn: "pending half_open half-open draining unknown estimated recovered left starting silent",
	bad: "failed unavailable disputed suspended down open dead unhealthy",
};
const TONES: Readonly<Record<string, Tone>> = Object.fromEntries(
	Object.entries(STATES).flatMap(([tone, names]) => names.split(" ").map((name) => [name, tone as Tone])),
);

export function State({ value, label, tone }: { value: string; label?: string; tone?: Tone }) {
	const shown = tone ?? TONES[value] ?? "off";
	return (
		<span className="state" data-tone={shown} style={{ color: `var(--${shown})` }}>
			{label ?? stateText(value)}
		</span>
	);
}

/** Shows the service's error text, and the request id for support. */
export function ErrorMessage({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }) {
	return (
		<Alert color="red" p="xs" icon={<Icon name="warning" />}>
			<Group justify="space-between" gap="xs">
				<div>
					<div>{error.message}</div>
					{error.code === "second_factor_required" && <Link to="/settings">{t("Go to your settings")}</Link>}
					{error.requestId && (
						<div className="small">
							{rich("Request {requestId}", {
								requestId: <CopyableId value={error.requestId} label={t("Copy the request's id")} />,
							})}
						</div>
					)}
				</div>
				{retry && (
					<Button size="xs" variant="default" onClick={retry}>
						{t("Try again")}
					</Button>
				)}
			</Group>
		</Alert>
	);
}

/** Placeholder of `height` while the resource loads; after a failure its error with a retry button. */
export function LoadState({ of, height }: { of: Resource<unknown>; height?: number }) {
	if (of.error) return <ErrorMessage error={of.error} retry={() => void of.reload()} />;
	return of.data === undefined && height !== undefined ? <Skeleton height={height} /> : null;
}

const COLORS = { info: "accent", ok: "green", warn: "yellow" } as const;

export function Notice({ kind = "info", children }: { kind?: keyof typeof COLORS; children: ReactNode }) {
	return (
		<Alert color={COLORS[kind]} p="xs" role="status">
			{children}
		</Alert>
	);
}

/** Empty state: says what will appear here and how to create the first one. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
	return (
		<Stack className="empty" align="center" gap="xs" py="xs" ta="center">
			<strong>{title}</strong>
			{children && <p className="dim">{children}</p>}
			{action}
		</Stack>
	);
}

export function PageWaiting() {
	return (
		<div className="page" aria-busy="true">
			<VisuallyHidden role="status">{t("Loading")}</VisuallyHidden>
			<Skeleton height={24} width={160} />
			<Skeleton height={120} />
			<Skeleton height={240} />
		</div>
	);
}
