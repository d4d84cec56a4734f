import { Anchor, Button, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import type { ApiError } from "../http.ts";
import { Icon } from "./icons.tsx";
import { Problem } from "./problem.tsx";

/** The message of an error about a field. */
export const fieldError = ({ error }: { error: ApiError | undefined }, field: string): string | undefined =>
	error?.param === field ? error.message : undefined;

/** The error of a form, unless one of `fields` shows it. */
export const otherError = ({ error }: { error: ApiError | undefined }, ...fields: string[]): ApiError | undefined =>
	fields.some((field) => field === error?.param) ? undefined : error;

/** Submitted by its button or Enter, never by the browser. The error is above the buttons. */
export function Form(props: {
	onSubmit: () => void;
	error?: ApiError | undefined;
	/** The buttons. */
	end?: ReactNode;
	children: ReactNode;
}) {
	return (
		<form
			onSubmit={(event) => {
				event.preventDefault();
				props.onSubmit();
			}}
		>
			<Stack gap="sm">
				{props.children}
				{props.error && <Problem error={props.error} />}
				{props.end}
			</Stack>
		</form>
	);
}

/** End of a form on a page; `children` are further acts. */
export function PanelEnd(props: {
	label: ReactNode;
	busy: boolean;
	disabled?: boolean;
	/** The main act of the panel. */
	main?: boolean;
	children?: ReactNode;
}) {
	return (
		<Group justify="flex-end" gap="xs">
			{props.children}
			<Button
				type="submit"
				variant={props.main ? "filled" : "default"}
				loading={props.busy}
				disabled={props.disabled ?? false}
			>
				{props.label}
			</Button>
		</Group>
	);
}

/** A button that looks like a link, as in table rows. */
export function LinkButton({
	onClick,
	children,
	...rest
}: {
	onClick: () => void;
	children: ReactNode;
	id?: string;
	"aria-expanded"?: boolean;
}) {
	return (
		<Anchor component="button" type="button" inherit onClick={onClick} {...rest}>
			{children}
		</Anchor>
	);
}

/** Saves what the page shows as a file, in full. */
export function CsvButton({ href }: { href: string }) {
	return (
		<Button component="a" href={href} download size="xs" variant="default" leftSection={<Icon name="download" />}>
			CSV
		</Button>
	);
}
