import {
	Checkbox,
	type CheckboxProps,
	NumberInput,
	type NumberInputProps,
	PasswordInput,
	type PasswordInputProps,
	TextInput,
	type TextInputProps,
} from "@mantine/core";
import { useState } from "react";
import { PASSWORD_CHARS_MIN } from "../../console/views.ts";
import { NUMBER_SEPARATORS, t } from "../texts.tsx";

interface Field {
	readonly value: string;
	readonly onChange: (value: string) => void;
}

/** State of a field, to be passed to it. */
export function useField(first = ""): Field {
	const [value, onChange] = useState(first);
	return { value, onChange };
}

export function TextField({ onChange, ...rest }: Omit<TextInputProps, "onChange"> & Field) {
	return (
		<TextInput required withAsterisk={false} onChange={(event) => onChange(event.currentTarget.value)} {...rest} />
	);
}

export function CheckField(
	props: Omit<CheckboxProps, "onChange" | "value"> & { checked: boolean; onChange: (checked: boolean) => void },
) {
	const { onChange, ...rest } = props;
	return <Checkbox onChange={(event) => onChange(event.currentTarget.checked)} {...rest} />;
}

export function PasswordField({ onChange, ...rest }: Omit<PasswordInputProps, "onChange"> & Field) {
	return (
		<PasswordInput
			required
			withAsterisk={false}
			autoComplete="current-password"
			onChange={(event) => onChange(event.currentTarget.value)}
			visibilityToggleButtonProps={{ "aria-label": t("Show the password") }}
			{...rest}
		/>
	);
}

/** Field for a person's name. `autoComplete` lets browsers fill it in. */
export function NameField(field: Field) {
	return (
		<TextField
			label={t("Name")}
			description={t("Your name or your company's")}
			autoComplete="name"
			maxLength={100}
			{...field}
		/>
	);
}

/** Field for a mail address. `autoComplete` is `username` for signing in, `email` for signing up. */
export function EmailField(field: Parameters<typeof TextField>[0]) {
	return <TextField label={t("Email")} type="email" {...field} />;
}

export function NewPasswordField(field: Parameters<typeof PasswordField>[0]) {
	return (
		<PasswordField
			label={t("Password")}
			description={t("At least {count} characters", { count: PASSWORD_CHARS_MIN })}
			autoComplete="new-password"
			minLength={PASSWORD_CHARS_MIN}
			{...field}
		/>
	);
}

/** Search field of a page, which the key `/` focuses (`shortcuts.tsx`). */
export function SearchField({ label, ...rest }: Parameters<typeof TextField>[0] & { label: string }) {
	const placeholder = t("Search (press /)");
	return <TextField required={false} size="xs" aria-label={label} placeholder={placeholder} data-search {...rest} />;
}

/** Field for an amount in dollars, as typed. `onChange` runs only for changes by the user. */
export function UsdField({ onChange, ...rest }: Omit<NumberInputProps, "onChange"> & Field) {
	return (
		<NumberInput
			hideControls
			decimalScale={2}
			allowNegative={false}
			{...NUMBER_SEPARATORS}
			{...rest}
			onValueChange={({ value }, { source }) => {
				if (source === "event") onChange(value);
			}}
		/>
	);
}
