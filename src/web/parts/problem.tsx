import { Alert, Button, Group, Skeleton, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiError } from "../http.ts";
import type { Resource } from "../resource.ts";
import { Link } from "../router.tsx";
import { rich, t } from "../texts.tsx";
import { Icon } from "./icons.tsx";
import { Id } from "./text.tsx";

/** Shows the service's error text, and the request id for support. */
export function Problem({ error, retry }: { error: ApiError; retry?: (() => void) | undefined }) {
	return (
		<Alert color="red" p="xs" icon={<Icon name="warning" />}>
			<Group justify="space-between" gap="xs">
				<div>
					<div>{error.message}</div>
					{error.code === "second_factor_required" && <Link to="/settings">{t("Go to your settings")}</Link>}
					{error.requestId && (
						<div className="small">
							{rich("Request {requestId}", {
								requestId: <Id value={error.requestId} label={t("Copy the request's id")} />,
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
export function Reading({ of, height }: { of: Resource<unknown>; height?: number }) {
	if (of.error) return <Problem error={of.error} retry={() => void of.reload()} />;
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
