// The same for tests and fakes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core_headers.h"
