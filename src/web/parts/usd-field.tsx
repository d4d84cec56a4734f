import { NumberInput, type NumberInputProps } from "@mantine/core";
import { SEPARATORS } from "../format.ts";

/** Dollars and cents, as typed. `onChange` is called for changes by the user only. */
export function UsdField({
	onChange,
	...rest
}: Omit<NumberInputProps, "onChange"> & { readonly value: string; readonly onChange: (usd: string) => void }) {
	return (
		<NumberInput
			hideControls
			decimalScale={2}
			allowNegative={false}
			{...SEPARATORS}
			{...rest}
			onValueChange={({ value }, { source }) => {
				if (source === "event") onChange(value);
			}}
		/>
	);
}
